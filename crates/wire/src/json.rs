//! Any JSON value, kept as the text it came as.
//!
//! A payload or a result passes through unread: its order of keys, its numbers and its spaces stay
//! what they were. Two values are equal when their texts are. Because it borrows serde_json's raw
//! value, it works in serde_json only, and not below `#[serde(flatten)]` or untagged enums.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Any JSON value as text.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = serde_json::Value)]
pub struct Json(pub Box<RawValue>);

impl Json {
    /// The value of a JSON text. Fails when `text` is not exactly one JSON value.
    pub fn from_text(text: String) -> Result<Json, serde_json::Error> {
        RawValue::from_string(text).map(Json)
    }

    /// `value` as JSON. Fails when its `Serialize` does, or when it has a map with keys that are
    /// not strings.
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> Result<Json, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Json)
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Reads the text as a `T`.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// The JSON text, without copying it.
    pub fn into_text(self) -> String {
        Box::<str>::from(self.0).into_string()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

/// For `Option<Json>` fields: `null` is a value like any other, only an absent field is `None`.
pub(crate) fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}
