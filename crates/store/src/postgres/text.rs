//! Texts as PostgreSQL can hold them: it knows no NUL.
//!
//! U+0001 stands before what was a NUL (as `0`) or itself (as `1`). So every text comes back as it was,
//! different texts stay different, and their order by bytes is kept. Nearly no text has either.

use std::borrow::Cow;
use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::error::StoreError;

use super::row::get;

/// A text that is given to the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a>(pub(super) &'a str);

impl ToSql for Text<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        encode(self.0).as_ref().to_sql(ty, out)
    }

    fn accepts(ty: &Type) -> bool {
        <&str as ToSql>::accepts(ty)
    }

    to_sql_checked!();
}

/// As it is stored.
pub(super) fn encode(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte > 1) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\u{1}', "\u{1}1").replace('\0', "\u{1}0"))
}

/// As it was given.
pub(super) fn decode(text: String) -> String {
    if text.bytes().all(|byte| byte > 1) {
        return text;
    }
    text.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}")
}

/// A text column.
pub(super) fn get_text(row: &Row, index: usize) -> Result<String, StoreError> {
    Ok(decode(get(row, index)?))
}

/// The same, or null.
pub(super) fn get_maybe_text(row: &Row, index: usize) -> Result<Option<String>, StoreError> {
    Ok(get::<Option<String>>(row, index)?.map(decode))
}

/// Optional texts that are given to the server.
pub(super) fn maybe(text: &Option<String>) -> Option<Text<'_>> {
    text.as_deref().map(Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_stay_apart_and_keep_their_order() {
        let parts = ["", "\0", "\u{1}", "0", "1", "\u{2}", "é"];
        let mut texts: Vec<String> = Vec::new();
        for a in parts {
            for b in parts {
                texts.extend(parts.iter().map(|c| format!("{a}{b}{c}")));
            }
        }
        texts.sort();
        texts.dedup();
        let stored: Vec<String> = texts.iter().map(|text| encode(text).into_owned()).collect();
        assert!(stored.is_sorted_by(|a, b| a < b));
        assert!(stored.iter().all(|text| !text.contains('\0')));
        assert_eq!(stored.into_iter().map(decode).collect::<Vec<_>>(), texts);
    }
}
