//! Tells "the same request again" from "another one under the same id".
//!
//! The hash is stored with the task, so what goes into it and in which order never changes. It
//! is taken over what was asked after it was read: spellings of durations, spaces of JSON and the
//! order of tags and headers do not matter, the order of keys in a payload does.
//!
//! Clients commonly choose ids, so this is on the path of every creation: nothing is cloned.

use tourbillon_node::api::{Due, OnConflict};
use tourbillon_store::TaskSpec;
use tourbillon_store::hash::stable_hash;
use tourbillon_store::task::{BackoffShape, Target};

/// The fingerprint of a request.
pub(crate) fn of(
    namespace: &str,
    queue: &str,
    due: Due,
    on_conflict: OnConflict,
    spec: &TaskSpec,
) -> u64 {
    let mut text = Text(Vec::with_capacity(256));
    match due {
        Due::Now => text.number(0),
        Due::At(at) => text.number(1).number(at.0),
        Due::In(delay) => text.number(2).number(delay),
    };
    text.number(match on_conflict {
        OnConflict::Reject => 0,
        OnConflict::Keep => 1,
        OnConflict::Replace => 2,
    });
    text.string(&spec.kind).optional(spec.key.as_deref());
    match &spec.target {
        Target::Http(t) => text.number(0).string(&t.method).string(&t.url).pairs(&t.headers),
        Target::Command(t) => {
            text.number(1).number(t.argv.len() as i64);
            t.argv.iter().for_each(|a| {
                text.string(a);
            });
            text.pairs(&t.env).optional(t.cwd.as_deref()).optional(t.stdin.as_deref())
        }
        Target::Worker => text.number(2),
    };
    text.number(spec.priority.into()).maybe(spec.timeout).maybe(spec.expires_at.map(|t| t.0));
    text.number(spec.at_most_once.into());
    let retry = &spec.retry;
    text.maybe(retry.max_attempts.map(i64::from)).maybe(retry.max_lost.map(i64::from));
    text.maybe(retry.give_up_after).number(retry.backoff.is_some().into());
    if let Some(b) = &retry.backoff {
        text.number(match b.shape {
            BackoffShape::Fixed => 0,
            BackoffShape::Linear => 1,
            BackoffShape::Exponential => 2,
        });
        text.number(b.initial).number(b.factor.to_bits() as i64).number(b.max);
        text.number(b.full_jitter.into());
    }
    text.optional(spec.concurrency_key.as_deref()).pairs(&spec.tags);
    if let Some(payload) = &spec.payload {
        compact(payload, &mut text.0);
    }
    stable_hash(&[namespace.as_bytes(), queue.as_bytes(), &text.0])
}

/// Fields one after the other, each so written that it cannot be taken for another.
struct Text(Vec<u8>);

impl Text {
    fn number(&mut self, n: i64) -> &mut Text {
        self.0.extend_from_slice(&n.to_be_bytes());
        self
    }

    fn maybe(&mut self, n: Option<i64>) -> &mut Text {
        self.number(n.is_some().into()).number(n.unwrap_or(0))
    }

    fn string(&mut self, text: &str) -> &mut Text {
        self.number(text.len() as i64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn optional(&mut self, text: Option<&str>) -> &mut Text {
        self.number(text.is_some().into()).string(text.unwrap_or(""))
    }

    fn pairs(&mut self, pairs: &[(String, String)]) -> &mut Text {
        let mut sorted: Vec<&(String, String)> = pairs.iter().collect();
        sorted.sort();
        self.number(sorted.len() as i64);
        sorted.into_iter().fold(self, |text, (name, value)| text.string(name).string(value))
    }
}

/// Appends a JSON text without the spaces between its parts.
fn compact(text: &str, out: &mut Vec<u8>) {
    let (mut inside, mut escaped) = (false, false);
    for &byte in text.as_bytes() {
        if !inside && byte.is_ascii_whitespace() {
            continue;
        }
        if byte == b'"' && !escaped {
            inside = !inside;
        }
        escaped = inside && byte == b'\\' && !escaped;
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::convert::Judge;
    use tourbillon_store::Time;

    #[test]
    fn spaces_between_parts_go_and_those_inside_stay() {
        for (text, expected) in [
            ("{ \"a b\" : [ 1 , 2 ] }\n", r#"{"a b":[1,2]}"#),
            (r#""a \" b""#, r#""a \" b""#),
            (r#"["\\" , " "]"#, r#"["\\"," "]"#),
        ] {
            let mut out = Vec::new();
            compact(text, &mut out);
            assert_eq!(out, expected.as_bytes());
        }
    }

    fn fingerprint(fields: &str) -> u64 {
        let text = format!(
            r#"{{"id":"018f2f6e-0000-7000-8000-000000000001","target":{{"worker":{{}}}}{fields}}}"#
        );
        let limits = Limits::default();
        let judge = Judge { limits: &limits, now: Time(0), namespace: "default", commands: true };
        judge.task(serde_json::from_str(&text).unwrap()).unwrap().id.unwrap().1
    }

    #[test]
    fn spelling_does_not_matter_and_meaning_does() {
        for (a, b) in [
            (r#","delay":"60s""#, r#", "delay": "1m""#),
            (r#","payload":{"a":1}"#, r#","payload":{ "a" : 1 }"#),
            (r#","tags":{"a":"1","b":"2"}"#, r#","tags":{"b":"2","a":"1"}"#),
            (r#","queue":"default""#, ""),
            (r#","kind":"worker","priority":0"#, ""),
        ] {
            assert_eq!(fingerprint(a), fingerprint(b), "{a} {b}");
        }
        let different = [
            "",
            r#","delay":"60s""#,
            r#","delay":"61s""#,
            r#","due_at":"2026-12-01T09:00:00Z""#,
            r#","queue":"q""#,
            r#","namespace":"n""#,
            r#","kind":"k""#,
            r#","key":"k""#,
            r#","concurrency_key":"k""#,
            r#","payload":null"#,
            r#","payload":"null""#,
            r#","priority":1"#,
            r#","timeout":"1s""#,
            r#","expires_at":"2026-12-01T09:00:00Z""#,
            r#","at_most_once":true"#,
            r#","on_conflict":"keep""#,
            r#","tags":{"a":"b"}"#,
            r#","retry":{"max_attempts":2}"#,
            r#","retry":{"max_lost":2}"#,
            r#","retry":{"backoff":{"fixed":{"delay":"1s"}}}"#,
            r#","retry":{"backoff":{"linear":{"initial":"1s"}}}"#,
        ];
        for (i, a) in different.iter().enumerate() {
            for b in &different[i + 1..] {
                assert_ne!(fingerprint(a), fingerprint(b), "{a} {b}");
            }
        }
    }
}
