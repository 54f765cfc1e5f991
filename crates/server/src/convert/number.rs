//! Judges whole numbers.

use std::fmt::Display;

use crate::failure::{Failure, Result};

/// A number within bounds.
pub(crate) fn within<T: PartialOrd + Display>(n: T, field: &str, least: T, most: T) -> Result<T> {
    if n >= least && n <= most {
        return Ok(n);
    }
    Err(Failure::invalid(field, format!("{n} is out of range"), format!("from {least} to {most}")))
}
