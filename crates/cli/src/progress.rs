//! Progress of long work on standard error, when that is a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `total` units, or a count when the total is not known. Draws nothing elsewhere than on
/// a terminal.
pub(crate) fn bar(total: Option<u64>, unit: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = match total {
        Some(_) => "{bar:30} {pos}/{len} {msg} {per_sec} {eta}",
        None => "{spinner} {pos} {msg} {per_sec}",
    };
    let bar = match total {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::new_spinner(),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.with_message(unit)
}
