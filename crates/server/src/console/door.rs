//! Signing in and out, the choice of language, and the page that says what went wrong.

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use maud::{DOCTYPE, html};
use tourbillon_wire::Problem;

use super::context::{Context, LANGUAGE_COOKIE, local};
use super::form::Form;
use super::page::{head, language_switch, mark, respond};
use super::text::Text;
use crate::doors::COOKIE;
use crate::failure::{Failure, Result};
use crate::state::App;

/// Seconds that a browser keeps the token: 30 days.
const TOKEN_AGE_S: u32 = 30 * 86_400;
/// Seconds that a browser keeps the language: a year.
const LANGUAGE_AGE_S: u32 = 365 * 86_400;

/// Asks for the token.
pub(crate) async fn ask(cx: Context) -> Response {
    ask_page(&cx, cx.param("next").as_deref(), false)
}

fn ask_page(cx: &Context, next: Option<&str>, wrong: bool) -> Response {
    let t = cx.t;
    let status = if wrong { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    let body = html! {
        (DOCTYPE)
        html lang=(t.lang) {
            (head(t.sign_in))
            body {
                main.login #main {
                    div.brand { (mark()) span { "Tourbillon" } }
                    form.panel method="post" action="/login" {
                        @if wrong { p.wrong role="alert" { (t.wrong_token) } }
                        label.field { (t.token) input type="password" name="token" autocomplete="current-password" autofocus required; }
                        input type="hidden" name="next" value=(local(next));
                        button.primary { (t.sign_in) }
                        p.muted { (t.token_where) }
                    }
                    p { (language_switch(cx)) }
                }
            }
        }
    };
    respond(status, body)
}

/// Takes the token and keeps it in a cookie that no script reads and no other site sends along.
pub(crate) async fn enter(
    State(app): State<App>,
    headers: HeaderMap,
    cx: Context,
    form: Form,
) -> Result<Response> {
    let shown = form.get("token").unwrap_or_default();
    let next = form.get("next");
    if !app.doors.is_token(&shown) {
        return Ok(ask_page(&cx, next.as_deref(), true));
    }
    let value = format!(
        "{COOKIE}={}; Path=/; Max-Age={TOKEN_AGE_S}; HttpOnly; SameSite=Strict{}",
        URL_SAFE_NO_PAD.encode(shown),
        secure(&headers),
    );
    with_cookie(Redirect::to(local(next.as_deref())).into_response(), &value)
}

/// Forgets the token.
pub(crate) async fn leave(headers: HeaderMap, _form: Form) -> Result<Response> {
    let value =
        format!("{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict{}", secure(&headers));
    with_cookie(Redirect::to("/").into_response(), &value)
}

/// Remembers the language and goes back.
pub(crate) async fn language(cx: Context, Path(tag): Path<String>) -> Result<Response> {
    let tag = if tag == "zh" { "zh" } else { "en" };
    let value = format!("{LANGUAGE_COOKIE}={tag}; Path=/; Max-Age={LANGUAGE_AGE_S}; SameSite=Lax");
    let next = cx.param("next");
    with_cookie(Redirect::to(local(next.as_deref())).into_response(), &value)
}

/// Over TLS a cookie is not to travel without it.
fn secure(headers: &HeaderMap) -> &'static str {
    let origin = headers.get(header::ORIGIN).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if origin.starts_with("https://") { "; Secure" } else { "" }
}

fn with_cookie(mut response: Response, cookie: &str) -> Result<Response> {
    let value = HeaderValue::from_str(cookie)
        .map_err(|_| Failure::new(500, tourbillon_wire::code::INTERNAL))?;
    response.headers_mut().append(header::SET_COOKIE, value);
    Ok(response)
}

/// Whether a browser asks for a page, not a program for a document.
pub(crate) fn wants_page(request: &Request) -> bool {
    let path = request.uri().path();
    let api = ["/v1", "/healthz", "/readyz", "/metrics", "/openapi.json", "/assets"];
    let page = !api
        .iter()
        .any(|p| path.strip_prefix(p).is_some_and(|r| r.is_empty() || r.starts_with('/')));
    let accept = request.headers().get(header::ACCEPT).and_then(|v| v.to_str().ok());
    page && accept.is_some_and(|accept| accept.contains("text/html"))
}

/// A problem as a page.
pub(crate) fn problem_page(t: &Text, problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = html! {
        (DOCTYPE)
        html lang=(t.lang) {
            (head(t.went_wrong))
            body {
                header.bar { a.brand href="/" { (mark()) span { "Tourbillon" } } }
                main #main {
                    h1 { (t.went_wrong) }
                    div.wrong {
                        p { b { (problem.title) } " (" (problem.status) " " code { (problem.code) } ")" }
                        @if let Some(field) = &problem.field { p { code { (field) } } }
                        @if let Some(detail) = &problem.detail { p { (detail) } }
                        @if let Some(expected) = &problem.expected { p { (t.expected) ": " (expected) } }
                    }
                }
            }
        }
    };
    respond(status, body)
}
