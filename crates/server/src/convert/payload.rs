//! Judges the text of a payload: depth, characters and numbers, in one pass over its bytes.
//!
//! The text is known to be JSON (the parser took it as a raw value), so this looks only for what
//! JSON allows and other programs trip over. Nothing is allocated unless something is wrong.

use tourbillon_wire::code;

use crate::Limits;
use crate::failure::{Failure, Result};

/// Checks a JSON text against the bounds. `field` names it in errors.
pub(crate) fn check(text: &str, field: &str, limits: &Limits) -> Result<()> {
    if text.len() > limits.payload_bytes {
        return Err(Failure::new(413, code::TOO_LARGE)
            .field(field)
            .detail(format!("it has {} bytes", text.len()))
            .expected(format!("at most {} bytes of JSON", limits.payload_bytes)));
    }
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = string(bytes, at + 1).map_err(|at| character(field, bytes, at))?;
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > limits.payload_depth {
                    return Err(Failure::new(422, code::TOO_DEEP)
                        .field(field)
                        .detail(format!("it is nested deeper than {} at byte {at}", depth - 1))
                        .expected(format!("at most {} levels", limits.payload_depth)));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'-' | b'0'..=b'9' => {
                at = number(bytes, at, field, limits)?;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// From the first byte of a string's inside to after its closing quote; the position of an escape
/// that is wrong.
fn string(bytes: &[u8], mut at: usize) -> Result<usize, usize> {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return Ok(at + 1),
            b'\\' if bytes.get(at + 1) == Some(&b'u') => {
                match unit(bytes, at) {
                    Some(0) | None | Some(0xDC00..=0xDFFF) => return Err(at),
                    Some(0xD800..=0xDBFF) => {
                        if !matches!(unit(bytes, at + 6), Some(0xDC00..=0xDFFF)) {
                            return Err(at);
                        }
                        at += 12;
                    }
                    Some(_) => at += 6,
                };
            }
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    Ok(at)
}

/// The code unit of the escape `\uXXXX` that begins at `at`.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let digits = std::str::from_utf8(escape.strip_prefix(b"\\u")?).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

fn character(field: &str, bytes: &[u8], at: usize) -> Failure {
    let escape = String::from_utf8_lossy(&bytes[at..(at + 6).min(bytes.len())]).into_owned();
    let what = if escape.ends_with("0000") { "NUL" } else { "half of a surrogate pair" };
    Failure::new(422, code::BAD_CHARACTER)
        .field(field)
        .detail(format!("{escape} at byte {at} is {what}"))
        .expected("characters other than NUL, surrogates in pairs only")
}

/// From a number's first byte to after its last.
fn number(bytes: &[u8], start: usize, field: &str, limits: &Limits) -> Result<usize> {
    let (mut at, mut digits, mut exponent, mut nonzero) = (start, 0usize, false, false);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'0'..=b'9' => {
                digits += 1;
                nonzero |= byte != b'0' && !exponent;
            }
            b'e' | b'E' => exponent = true,
            b'+' | b'-' | b'.' => {}
            _ => break,
        }
        at += 1;
    }
    let wrong = |what: String| {
        Failure::new(422, code::BAD_NUMBER)
            .field(field)
            .detail(format!("the number at byte {start} {what}"))
            .expected(format!(
                "numbers of at most {} digits that fit a 64-bit float; else text",
                limits.number_digits
            ))
    };
    if digits > limits.number_digits {
        return Err(wrong(format!("has {digits} digits")));
    }
    if exponent {
        let value = std::str::from_utf8(&bytes[start..at]).ok().and_then(|t| t.parse::<f64>().ok());
        if value.is_none_or(|v| v.is_infinite() || (v == 0.0 && nonzero)) {
            return Err(wrong("is beyond the range of a 64-bit float".to_owned()));
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code_of(text: &str) -> Option<String> {
        let result = check(text, "payload", &Limits::default());
        result.err().map(|f| f.problem().code.clone())
    }

    #[test]
    fn texts_and_their_faults() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        for (text, expected) in [
            ("null".to_owned(), None),
            (deep(64), None),
            (deep(65), Some("too_deep")),
            (format!("{{\"a\":{}}}", deep(64)), Some("too_deep")),
            ("[[],[],[[]]]".to_owned(), None),
            (r#"{"a":"[[[[{{{{"}"#.to_owned(), None),
            (r#""\u0000""#.to_owned(), Some("bad_character")),
            (r#"{"\u0000":1}"#.to_owned(), Some("bad_character")),
            (r#""\\u0000""#.to_owned(), None),
            (r#""\uD83D\uDE00""#.to_owned(), None),
            (r#""\ud83d""#.to_owned(), Some("bad_character")),
            (r#""\ude00""#.to_owned(), Some("bad_character")),
            (r#""\ud83d\n""#.to_owned(), Some("bad_character")),
            (r#""\ud83d\ud83d""#.to_owned(), Some("bad_character")),
            (r#""a\"\u0041""#.to_owned(), None),
            ("1e308".to_owned(), None),
            ("[1e309]".to_owned(), Some("bad_number")),
            ("-1e999".to_owned(), Some("bad_number")),
            ("1e-999".to_owned(), Some("bad_number")),
            ("0e-999".to_owned(), None),
            ("9".repeat(64), None),
            (format!("[{}]", "9".repeat(65)), Some("bad_number")),
            (format!("\"{}\"", "x".repeat(300 << 10)), Some("too_large")),
        ] {
            assert_eq!(code_of(&text).as_deref(), expected, "{text:.60}");
        }
    }

    proptest! {
        /// What a tree of serde_json holds and prints is always allowed, within the bounds.
        #[test]
        fn ordinary_values_pass(text in "\\PC{0,40}", n in any::<i64>(), f in -1e300..1e300f64) {
            let text = text.replace('\0', "");
            let value = serde_json::json!({"t": text, "n": n, "f": f, "l": [text, {"x": null}]});
            prop_assert_eq!(code_of(&value.to_string()), None);
        }

        #[test]
        fn no_text_panics(text in "[\\[\\]{}:,\"\\\\ud0-9aeE.+\\-]{0,60}") {
            let _ = code_of(&text);
        }
    }
}
