//! What a page of the console needs to know of its request: language, namespace, parameters.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, header};
use tourbillon_wire::TaskState;
use url::form_urlencoded;

use super::text::{CHINESE, ENGLISH, Text};
use crate::convert::task::DEFAULT;
use crate::doors::{Caller, cookie};
use crate::failure::Result;
use crate::state::App;

/// The cookie that remembers the language chosen.
pub(crate) const LANGUAGE_COOKIE: &str = "tourbillon-language";

/// See the module.
pub(crate) struct Context {
    pub(crate) t: &'static Text,
    pub(crate) namespace: String,
    pub(crate) path: String,
    pub(crate) params: Vec<(String, String)>,
    /// Who calls.
    pub(crate) caller: Caller,
}

impl FromRequestParts<App> for Context {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Context, Infallible> {
        Ok(Context::new(parts, app))
    }
}

impl Context {
    fn new(parts: &Parts, app: &App) -> Context {
        let query = parts.uri.query().unwrap_or_default();
        let params: Vec<(String, String)> =
            form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let given = params.iter().find(|(n, _)| n == "namespace").map(|(_, v)| v.clone());
        Context {
            t: language(&parts.headers),
            // A namespace that cannot be is one in which there is nothing.
            namespace: app.namespace(given).unwrap_or_else(|_| DEFAULT.to_owned()),
            path: parts.uri.path().to_owned(),
            params,
            caller: parts
                .extensions
                .get::<Caller>()
                .copied()
                .unwrap_or(Caller { trusted: false, peer: None }),
        }
    }

    /// A parameter of the query; `None` also when it is empty, as unused fields of forms are.
    pub(crate) fn param(&self, name: &str) -> Option<String> {
        let found = self.params.iter().find(|(n, _)| n == name);
        found.map(|(_, v)| v.trim().to_owned()).filter(|v| !v.is_empty())
    }

    /// A link to a path of the console in this namespace. `path` is encoded, parameters are not.
    pub(crate) fn link(&self, path: &str, params: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if self.namespace != DEFAULT {
            query.append_pair("namespace", &self.namespace);
        }
        for (name, value) in params.iter().filter(|(_, value)| !value.is_empty()) {
            query.append_pair(name, value);
        }
        let query = query.finish();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }

    /// The address of the page itself.
    pub(crate) fn here(&self) -> String {
        let params = self.params.iter().filter(|(n, _)| n != "namespace");
        let params: Vec<(&str, &str)> = params.map(|(n, v)| (n.as_str(), v.as_str())).collect();
        self.link(&self.path, &params)
    }

    /// The state named by the parameter `state`.
    pub(crate) fn state(&self) -> Option<TaskState> {
        self.param("state")?.parse().ok()
    }
}

/// A segment of a path, encoded.
pub(crate) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Where to go on to: a path of this server, never another site.
pub(crate) fn local(next: Option<&str>) -> &str {
    let fine = |next: &&str| {
        next.starts_with('/')
            && !next.starts_with("//")
            && !next.contains('\\')
            && !next.chars().any(char::is_control)
    };
    next.filter(fine).unwrap_or("/")
}

/// The language that was chosen, else that of the browser, else English.
pub(crate) fn language(headers: &HeaderMap) -> &'static Text {
    let chosen = cookie(headers, LANGUAGE_COOKIE);
    let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|v| v.to_str().ok());
    match chosen {
        Some("zh") => &CHINESE,
        Some("en") => &ENGLISH,
        _ => preferred(accepted.unwrap_or_default()),
    }
}

/// The one of our languages with the highest weight; the first of equals.
fn preferred(accepted: &str) -> &'static Text {
    let mut best: (f32, &'static Text) = (0.0, &ENGLISH);
    for part in accepted.split(',') {
        let (tag, rest) = part.split_once(';').unwrap_or((part, ""));
        let weight = rest.trim().strip_prefix("q=").map_or(1.0, |q| q.parse().unwrap_or(0.0));
        let primary = tag.trim().split('-').next().unwrap_or_default().to_ascii_lowercase();
        let text: &'static Text = match primary.as_str() {
            "zh" => &CHINESE,
            "en" => &ENGLISH,
            _ => continue,
        };
        if weight > best.0 {
            best = (weight, text);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages() {
        for (accepted, expected) in [
            ("", "en"),
            ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
            ("en-GB,zh;q=0.9", "en"),
            ("fr,zh;q=0.5,en;q=0.6", "en"),
            ("de", "en"),
            ("zh;q=nonsense", "en"),
        ] {
            assert_eq!(preferred(accepted).lang, expected, "{accepted}");
        }
    }

    /// A page that sends people on to wherever its query says is a door for phishing.
    #[test]
    fn nobody_is_sent_to_another_site() {
        for (next, expected) in [
            (Some("/tasks?state=failed"), "/tasks?state=failed"),
            (Some("//evil.example"), "/"),
            (Some("/\\evil.example"), "/"),
            (Some("https://evil.example"), "/"),
            (Some("/a\r\nSet-Cookie: x"), "/"),
            (Some(""), "/"),
            (None, "/"),
        ] {
            assert_eq!(local(next), expected);
        }
    }

    #[test]
    fn segments_are_encoded() {
        assert_eq!(segment("a b/ü?"), "a%20b%2F%C3%BC%3F");
    }
}
