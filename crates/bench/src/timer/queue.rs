//! Consumers of a delay queue. Filled in with the queue.
use anyhow::Result;
use super::Figure;
pub(super) const SUBJECTS: &[&str] = &[];
pub(super) fn measure(_: &str, _: bool) -> Result<Vec<Figure>> { Ok(Vec::new()) }
