//! Counts and latencies of requests, by the kind of the request and the status of the answer.
//!
//! Each thread that answers has counts of its own, so that no two processors write to one cache line.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::http::{Method, Response, StatusCode};

use super::text::{MetricKind, MetricsText};
use ibifs_formats::base_url::BaseUrl;

/// The upper limits of the latencies that are counted together, in microseconds, as they are reported in seconds.
const LIMITS: [(u64, &str); 13] = [
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (10_000_000, "10"),
];
/// The first status, and how many there are.
const STATUSES: (u16, usize) = (100, 500);

/// The kinds of requests to a service.
#[derive(Clone, Debug)]
pub struct RequestKinds {
    /// Their names.
    pub names: &'static [&'static str],
    /// The kind of a request, from its method, the path without a slash in front, and the query.
    pub of: fn(&Method, &str, &str) -> usize,
    /// The URL of the service, whose prefix the path may have.
    pub url: BaseUrl,
}

impl RequestKinds {
    /// The position of a request's kind in the names.
    pub fn position<B>(&self, request: &axum::http::Request<B>) -> usize {
        let uri = request.uri();
        let path = self.url.below(uri.path()).unwrap_or(uri.path());
        let path = path.trim_start_matches('/');
        let query = uri.query().unwrap_or_default();
        (self.of)(request.method(), path, query).min(self.names.len().saturating_sub(1))
    }
}

/// The requests of one kind.
#[derive(Debug)]
struct KindCounts {
    by_status: Vec<AtomicU64>,
    /// By the limit that the latency does not exceed. The last is for those above all limits.
    by_latency: Vec<AtomicU64>,
    microseconds: AtomicU64,
}

/// The requests that one thread has answered.
#[derive(Debug)]
pub struct RequestCounts {
    kinds: RequestKinds,
    counts: Vec<KindCounts>,
}

/// A request that is being answered.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    kind: usize,
    began: Instant,
}

impl RequestCounts {
    /// No requests of these kinds.
    pub fn new(kinds: &RequestKinds) -> Arc<RequestCounts> {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        let counts = kinds.names.iter().map(|_| KindCounts {
            by_status: zeros(STATUSES.1),
            by_latency: zeros(LIMITS.len() + 1),
            microseconds: AtomicU64::new(0),
        });
        Arc::new(RequestCounts {
            kinds: kinds.clone(),
            counts: counts.collect(),
        })
    }

    /// Begins to measure a request.
    pub fn begin<B>(&self, request: &axum::http::Request<B>) -> Measured {
        Measured {
            kind: self.kinds.position(request),
            began: Instant::now(),
        }
    }

    /// Counts a request whose answer begins to be sent.
    pub fn end<B>(&self, measured: Measured, response: &Response<B>) {
        let taken = u64::try_from(measured.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.count(measured.kind, response.status(), taken);
    }

    fn count(&self, kind: usize, status: StatusCode, microseconds: u64) {
        let Some(counts) = self.counts.get(kind) else {
            return;
        };
        let status = usize::from(status.as_u16().saturating_sub(STATUSES.0));
        let limit = LIMITS.iter().position(|(most, _)| microseconds <= *most);
        raise(counts.by_status.get(status), 1);
        raise(counts.by_latency.get(limit.unwrap_or(LIMITS.len())), 1);
        raise(Some(&counts.microseconds), microseconds);
    }
}

fn raise(count: Option<&AtomicU64>, by: u64) {
    if let Some(count) = count {
        count.fetch_add(by, Ordering::Relaxed);
    }
}

/// Adds what all threads have counted.
pub fn measure(threads: &[Arc<RequestCounts>], text: &mut MetricsText) {
    let Some(first) = threads.first() else {
        return;
    };
    let sum = |of: &dyn Fn(&RequestCounts) -> Option<&AtomicU64>| -> u64 {
        let counts = threads.iter().filter_map(|thread| of(thread));
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    };
    let name = "ibifs_http_requests_total";
    text.metric(
        name,
        MetricKind::Counter,
        "Requests that were answered, by kind and status.",
    );
    for (kind, word) in first.kinds.names.iter().enumerate() {
        for status in 0..STATUSES.1 {
            let count = sum(&|thread| thread.counts.get(kind)?.by_status.get(status));
            if count > 0 {
                let status = (usize::from(STATUSES.0) + status).to_string();
                text.sample(name, &[("kind", word), ("status", &status)], count);
            }
        }
    }
    let name = "ibifs_http_request_duration_seconds";
    text.metric(
        name,
        MetricKind::Histogram,
        "Time from a request to the beginning of its answer, by kind, in seconds.",
    );
    for (kind, word) in first.kinds.names.iter().enumerate() {
        let mut count = 0;
        let limits = LIMITS.iter().map(|(_, limit)| *limit).chain(["+Inf"]);
        for (at, limit) in limits.enumerate() {
            count += sum(&|thread| thread.counts.get(kind)?.by_latency.get(at));
            let labels = [("kind", *word), ("le", limit)];
            text.sample(&format!("{name}_bucket"), &labels, count);
        }
        let taken = sum(&|thread| Some(&thread.counts.get(kind)?.microseconds));
        let seconds = format!("{}.{:06}", taken / 1_000_000, taken % 1_000_000);
        text.sample(&format!("{name}_sum"), &[("kind", word)], seconds);
        text.sample(&format!("{name}_count"), &[("kind", word)], count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> RequestKinds {
        RequestKinds {
            names: &["one", "other"],
            of: |method, path, query| {
                usize::from(method != Method::GET || path != "a/b" || query != "c")
            },
            url: BaseUrl::parse("https://a.org/x").expect("a URL"),
        }
    }

    #[test]
    fn kinds_do_not_depend_on_the_prefix() {
        let kinds = kinds();
        let of = |path: &str| {
            let request = axum::http::Request::builder().uri(path).body(());
            kinds.position(&request.expect("a request"))
        };
        assert_eq!(["/a/b?c", "/x/a/b?c", "/a/b", "*"].map(of), [0, 0, 1, 1]);
    }

    #[test]
    fn threads_are_added_up() {
        let threads = [RequestCounts::new(&kinds()), RequestCounts::new(&kinds())];
        threads[0].count(0, StatusCode::OK, 500);
        threads[1].count(0, StatusCode::OK, 501);
        threads[1].count(0, StatusCode::NOT_FOUND, 20_000_000);
        threads[1].count(2, StatusCode::OK, 1);
        let mut text = MetricsText::default();
        measure(&threads, &mut text);
        let text = text.into_string();
        for line in [
            "ibifs_http_requests_total{kind=\"one\",status=\"200\"} 2",
            "ibifs_http_requests_total{kind=\"one\",status=\"404\"} 1",
            "ibifs_http_request_duration_seconds_bucket{kind=\"one\",le=\"0.0005\"} 1",
            "ibifs_http_request_duration_seconds_bucket{kind=\"one\",le=\"10\"} 2",
            "ibifs_http_request_duration_seconds_bucket{kind=\"one\",le=\"+Inf\"} 3",
            "ibifs_http_request_duration_seconds_sum{kind=\"one\"} 20.001001",
            "ibifs_http_request_duration_seconds_count{kind=\"one\"} 3",
            "ibifs_http_request_duration_seconds_count{kind=\"other\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
