//! The frame around every page, and the small parts that pages share.

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use tourbillon_wire::Timestamp;

use super::context::Context;
use super::text::Text;

/// Nothing but what this server sends is loaded or run; nobody frames the console. `Origin` is
/// sent along with forms only under a referrer policy that allows it.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
         img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CACHE_CONTROL, "no-store"),
];

/// The pages that the navigation leads to: path, name, and whether it is live.
fn places(t: &Text) -> [(&'static str, &'static str); 9] {
    [
        ("/", t.overview),
        ("/wheel", t.wheel),
        ("/tasks", t.tasks),
        ("/schedules", t.schedules),
        ("/calendars", t.calendars),
        ("/queues", t.queues),
        ("/nodes", t.nodes),
        ("/analysis", t.analysis),
        ("/dead-letters", t.dead_letters),
    ]
}

/// How a page keeps up with what happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Live {
    /// It does not.
    No,
    /// It is fetched again after something happened, and now and then.
    Yes,
}

/// A whole page.
pub(crate) fn page(cx: &Context, title: &str, live: Live, main: Markup) -> Response {
    respond(StatusCode::OK, frame(cx, title, live, main))
}

/// HTML with the headers that every page has.
pub(crate) fn respond(status: StatusCode, body: Markup) -> Response {
    let mut response = (status, body.into_string()).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The frame around `main`.
pub(crate) fn frame(cx: &Context, title: &str, live: Live, main: Markup) -> Markup {
    let t = cx.t;
    html! {
        (DOCTYPE)
        html lang=(t.lang) {
            (head(title))
            body data-live[live == Live::Yes] data-namespace=(cx.namespace) {
                a.skip href="#main" { (t.skip_to_content) }
                header.bar {
                    a.brand href=(cx.link("/", &[])) { (mark()) span { "Tourbillon" } }
                    nav {
                        @for (path, name) in places(t) {
                            a href=(cx.link(path, &[])) aria-current=[current(cx, path)] { (name) }
                        }
                    }
                    div.tools {
                        @if live == Live::Yes { span.live hidden title=(t.live) { (t.live) } }
                        (language_switch(cx))
                        @if cx.caller.trusted {
                            form method="post" action="/logout" { button.quiet { (t.sign_out) } }
                        }
                    }
                }
                main #main tabindex="-1" {
                    @if cx.param("done").is_some() { p.notice role="status" { (t.done) } }
                    (main)
                }
                script src="/assets/console.js" defer {}
            }
        }
    }
}

/// What stands in the head of every page.
pub(crate) fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · Tourbillon" }
            link rel="icon" type="image/svg+xml" href="/assets/icon.svg";
            link rel="stylesheet" href="/assets/console.css";
        }
    }
}

/// The link that shows the page in the other language.
pub(crate) fn language_switch(cx: &Context) -> Markup {
    let (tag, lang) = if cx.t.lang == "zh" { ("en", "en") } else { ("zh", "zh-Hans") };
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("next", &cx.here())
        .finish();
    html! {
        a.quiet lang=(lang) href=(format!("/language/{tag}?{query}")) { (cx.t.other_language) }
    }
}

fn current(cx: &Context, path: &str) -> Option<&'static str> {
    let here = cx.path == path || (path != "/" && cx.path.starts_with(&format!("{path}/")));
    here.then_some("page")
}

/// The mark: a balance wheel.
pub(crate) fn mark() -> Markup {
    PreEscaped(include_str!("assets/icon.svg").to_owned())
}

/// A state or outcome as a coloured label.
pub(crate) fn badge(t: &Text, word: &str) -> Markup {
    html! { span class=(format!("badge {word}")) { (t.word(word)) } }
}

/// An instant: how far away it is; exactly, in the title; in local time by script.
pub(crate) fn when(t: &Text, at: Timestamp, now: Timestamp) -> Markup {
    let text = at.to_string();
    html! { time datetime=(text) title=(text) { (relative(t, at, now)) } }
}

/// An instant, written out; in local time by script.
pub(crate) fn exact(at: Timestamp) -> Markup {
    let text = at.to_string();
    html! { time.exact datetime=(text) title=(text) { (text) } }
}

fn relative(t: &Text, at: Timestamp, now: Timestamp) -> String {
    let micros = at.as_micros().saturating_sub(now.as_micros());
    let text = span(micros.unsigned_abs());
    match micros {
        -999_999..=999_999 => t.now.to_owned(),
        m if m < 0 => format!("{text} {}", t.ago),
        _ => format!("{text} {}", t.from_now),
    }
}

/// A length of time in one or two units, for people.
pub(crate) fn span(micros: u64) -> String {
    let ms = micros / 1_000;
    let (s, m, h, d) = (ms / 1_000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
    match () {
        () if micros == 0 => "0 ms".to_owned(),
        () if ms == 0 => format!("{micros} µs"),
        () if ms < 1_000 => format!("{ms} ms"),
        () if s < 10 => format!("{}.{} s", s, ms % 1_000 / 100),
        () if s < 120 => format!("{s} s"),
        () if m < 120 => format!("{m} min"),
        () if h < 48 => format!("{h} h"),
        () if d < 730 => format!("{d} d"),
        () => format!("{} y", d / 365),
    }
}

/// Milliseconds with a fraction, for people.
pub(crate) fn millis(ms: f64) -> String {
    span((ms.max(0.0) * 1_000.0) as u64)
}

/// A number with its thousands apart.
pub(crate) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A form of one button that asks the server to do something.
pub(crate) fn button(action: &str, label: &str, class: &str) -> Markup {
    html! { form method="post" action=(action) { button class=(class) { (label) } } }
}

/// A table that scrolls sideways on narrow screens.
pub(crate) fn table(head: &[&str], rows: Markup) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { @for name in head { th scope="col" { (name) } } } }
                tbody { (rows) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_spans_for_people() {
        assert_eq!(number(0), "0");
        assert_eq!(number(1_234_567), "1\u{202f}234\u{202f}567");
        for (micros, expected) in [
            (0, "0 ms"),
            (7, "7 µs"),
            (12_000, "12 ms"),
            (3_450_000, "3.4 s"),
            (90_000_000, "90 s"),
            (600_000_000, "10 min"),
            (7_200_000_000, "2 h"),
            (259_200_000_000, "3 d"),
        ] {
            assert_eq!(span(micros), expected);
        }
    }
}
