//! One page of a list.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Timestamp;

/// One page of a list, newest first unless the list says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// What is on the page; it can be short, even empty, when `scanned_to` is there.
    pub items: Vec<T>,
    /// Give this as `cursor` to get the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Up to here (by creation) rows have been looked at: the filter matched too few of the rows
    /// that one page may look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scanned_to: Option<Timestamp>,
}

impl<T> Page<T> {
    /// A list that fits one page.
    pub fn whole(items: Vec<T>) -> Page<T> {
        Page { items, next_cursor: None, scanned_to: None }
    }
}
