//! Options whose values are the words of documents: the words are those that the documents take.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde::de::value::{Error, StrDeserializer};

/// A parser for one of `words`, each a value of `T` in documents.
pub(crate) fn one_of<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words)
        .try_map(|word| T::deserialize(StrDeserializer::<Error>::new(&word)))
}

/// A `NAME=VALUE` pair.
pub(crate) fn pair(given: &str) -> Result<(String, String), String> {
    split(given, '=', "NAME=VALUE")
}

/// A `Name: value` pair.
pub(crate) fn header(given: &str) -> Result<(String, String), String> {
    split(given, ':', "'Name: value'").map(|(name, value)| (name, value.trim().to_owned()))
}

fn split(given: &str, at: char, expected: &str) -> Result<(String, String), String> {
    match given.split_once(at) {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err(format!("expected {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_need_a_name() {
        assert_eq!(pair("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(header("X-A:  b: c "), Ok(("X-A".into(), "b: c".into())));
        assert!(pair("=b").is_err() && pair("a").is_err() && header(": x").is_err());
    }
}
