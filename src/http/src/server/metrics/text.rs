//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write};

/// The content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The kind of the values of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// They grow, and begin at 0 when the process starts.
    Counter,
    /// They go up and down.
    Gauge,
    /// Counts by size.
    Histogram,
}

impl MetricKind {
    fn word(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// A text that grows metric by metric.
#[derive(Debug, Default)]
pub struct MetricsText(String);

impl MetricsText {
    /// Begins a metric. Its samples follow.
    pub fn metric(&mut self, name: &str, kind: MetricKind, help: &str) {
        let help = escaped(help);
        let kind = kind.word();
        self.put(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Adds a sample of the last metric.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.put(format_args!("{name}"));
        for (at, (label, text)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            let text = escaped(text).replace('"', "\\\"");
            self.put(format_args!("{before}{label}=\"{text}\""));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        self.put(format_args!(" {value}\n"));
    }

    /// Adds a metric with one sample and no labels.
    pub fn single(&mut self, name: &str, kind: MetricKind, help: &str, value: impl Display) {
        self.metric(name, kind, help);
        self.sample(name, &[], value);
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.0.write_fmt(text);
    }

    /// The whole text.
    pub fn into_string(self) -> String {
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_escaped() {
        let mut text = MetricsText::default();
        text.single("a_b", MetricKind::Gauge, "one\ntwo\\", 1.5);
        text.metric("c", MetricKind::Counter, "three");
        text.sample("c", &[("x", "\"\\\n"), ("y", "z")], 7);
        assert_eq!(
            text.into_string(),
            "# HELP a_b one\\ntwo\\\\\n# TYPE a_b gauge\na_b 1.5\n\
             # HELP c three\n# TYPE c counter\nc{x=\"\\\"\\\\\\n\",y=\"z\"} 7\n"
        );
    }
}
