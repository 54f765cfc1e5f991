//! Consumers of a delay queue. Filled in with the queue.
use super::Figure;
use anyhow::Result;
pub(super) const SUBJECTS: &[&str] = &[];
pub(super) fn measure(_: &str, _: bool) -> Result<Vec<Figure>> {
    Ok(Vec::new())
}
