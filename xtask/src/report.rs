//! What a check found: a list of complaints, shown together.
//!
//! A check looks at everything before it fails, so that one run shows all there is to mend. A chore
//! that has to close with certain lines says by itself what failed, and returns [`Reported`].

use std::fmt;

use anyhow::{Result, bail};

/// The failure of a chore that has already said everything about it.
#[derive(Debug)]
pub(crate) struct Reported;

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed as said above")
    }
}

impl std::error::Error for Reported {}

/// Complaints gathered by one check.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Vec<String>);

impl Complaints {
    /// Adds one complaint; `text` says where, what was found and what would be right.
    pub(crate) fn add(&mut self, text: impl Into<String>) {
        self.0.push(text.into());
    }

    /// The complaints so far, in the order in which they were added.
    #[cfg(test)]
    pub(crate) fn texts(&self) -> &[String] {
        &self.0
    }

    /// Prints `fine` when there are none, else all of them, and fails.
    pub(crate) fn finish(self, check: &str, fine: &str) -> Result<()> {
        if self.0.is_empty() {
            println!("{check}: {fine}");
            return Ok(());
        }
        for text in &self.0 {
            println!("{check}: {text}");
        }
        bail!("{check}: {} to mend", self.0.len())
    }
}
