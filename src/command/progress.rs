//! The progress of a long command: one line on the terminal.
//!
//! The line has the amount done, the total, the rate and the remaining time. It is written to standard error,
//! only if that is a terminal, and not in the first half second. It is removed when the command ends.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::command::language::localized;
use ibi::message;
use ibi::message::Message;

/// The time before the line is shown.
const DELAY: Duration = Duration::from_millis(500);

/// The most updates of the line per second.
const RATE: u8 = 5;

/// The line of a running command, which is removed on drop.
#[derive(Debug)]
pub struct ProgressLine {
    /// None without a terminal.
    bar: Option<ProgressBar>,
    started: Instant,
    is_shown: Cell<bool>,
}

impl ProgressLine {
    /// Counts items, like [`ProgressLine::of`].
    pub fn of_items(total: impl FnOnce() -> Option<u64>) -> ProgressLine {
        ProgressLine::of(&message!("items"), total)
    }

    /// Counts units with this name. `total` is called only for a terminal, because counting may take time.
    pub fn of(what: &Message, total: impl FnOnce() -> Option<u64>) -> ProgressLine {
        let what = localized(what);
        // The placeholder is filled in by indicatif.
        let left = localized(&message!("{eta} left", eta = "{eta}"));
        let known = format!("{{bar:24}} {{pos}}/{{len}} {what}  {{rate}}{{msg}}  {left}");
        let unknown = format!("{{pos}} {what}  {{rate}}{{msg}}  {{elapsed}}");
        ProgressLine::new(total, &known, &unknown)
    }

    fn new(total: impl FnOnce() -> Option<u64>, known: &str, unknown: &str) -> ProgressLine {
        let started = Instant::now();
        let is_dumb = std::env::var_os("TERM").is_none_or(|name| name == "dumb");
        let bar = (std::io::stderr().is_terminal() && !is_dumb).then(|| {
            let total = total().filter(|total| *total > 0);
            let template = if total.is_some() { known } else { unknown };
            let style = ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> ")
                .with_key("rate", write_rate);
            ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden()).with_style(style)
        });
        ProgressLine {
            bar,
            started,
            is_shown: Cell::new(false),
        }
    }

    /// Sets the amount done. The first call sets the start of the work, which need not be zero.
    pub fn at(&self, done: u64) {
        let Some(bar) = &self.bar else {
            return;
        };
        // The estimated total may have been too low.
        if bar.length().is_some_and(|total| total < done) {
            bar.set_length(done);
        }
        let begins = bar.position() == 0;
        bar.set_position(done);
        if begins {
            bar.reset_eta();
        }
        if !self.is_shown.get() && self.started.elapsed() > DELAY {
            self.is_shown.set(true);
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(RATE));
        }
    }

    /// Sets the amount done and the number of bytes of content processed for it.
    pub fn at_bytes(&self, done: u64, bytes: u64) {
        if let Some(bar) = &self.bar {
            let rate = bytes as f64 / self.started.elapsed().as_secs_f64().max(0.001) / 1e6;
            bar.set_message(format!("  {:.0} MB, {rate:.0} MB/s", bytes as f64 / 1e6));
            self.at(done);
        }
    }

    /// Runs an action that writes to the terminal, with the line hidden.
    pub fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(act),
            None => act(),
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn write_rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let rate = match state.per_sec() {
        slow if slow < 10.0 => format!("{slow:.1}"),
        fast => format!("{fast:.0}"),
    };
    let _ = out.write_str(&localized(&message!("{rate} a second", rate)));
}
