//! Shows the progress of a long command on a terminal. In a pipe it shows nothing.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on stderr that clears itself when it ends.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Progress towards a known end.
    pub(crate) fn bar(length: u64, what: &str) -> Self {
        Progress::new(ProgressBar::with_draw_target(Some(length), target()), BAR, what)
    }

    /// Progress in bytes towards a known size.
    pub(crate) fn bytes(length: u64, what: &str) -> Self {
        Progress::new(ProgressBar::with_draw_target(Some(length), target()), BYTES, what)
    }

    /// Progress whose end is not known.
    pub(crate) fn spinner(what: &str) -> Self {
        Progress::new(ProgressBar::with_draw_target(None, target()), SPINNER, what)
    }

    fn new(bar: ProgressBar, template: &str, what: &str) -> Self {
        // The templates are constants of this file, and a bar without a style still works.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Progress(bar)
    }

    /// Sets the position.
    pub(crate) fn at(&self, position: u64) {
        self.0.set_position(position);
    }

    /// Advances by `delta`.
    pub(crate) fn add(&self, delta: u64) {
        self.0.inc(delta);
    }

    /// Sets the text beside the bar.
    pub(crate) fn tell(&self, what: &str) {
        self.0.set_message(super::visible(what));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

const BAR: &str = "{msg:<12} {bar:30} {human_pos}/{human_len} {per_sec} {eta}";
const BYTES: &str = "{msg:<12} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
const SPINNER: &str = "{spinner} {msg} {elapsed}";

fn target() -> ProgressDrawTarget {
    match stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}
