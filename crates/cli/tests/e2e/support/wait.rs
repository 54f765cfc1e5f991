//! Waiting for a condition: asked again and again until it holds or the deadline has passed.

// sleeps: the pause between two looks at a condition, within a deadline.

use std::time::{Duration, Instant};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until `look` gives something, at most `seconds`.
///
/// # Panics
///
/// When it did not in time; the message says what was waited for.
pub(crate) async fn eventually<T>(
    what: &str,
    seconds: u64,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(seconds), "{what}: not within {seconds} s");
        tokio::time::sleep(PAUSE).await;
    }
}
