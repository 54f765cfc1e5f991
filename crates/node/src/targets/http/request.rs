//! From a target and its attempt to a request.
//!
//! What always holds: the headers by which a receiver recognises a task, an attempt and its fence
//! are the node's own, whatever the target says; so are those that frame the message. Errors name
//! the header, never its value. What is deliberately absent: any I/O but reading secrets.

use bytes::Bytes;
use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION,
};
use reqwest::{Method, Request, Url};

use crate::targets::secret::{self, Secrets};
use crate::targets::{AttemptContext, AttemptEnd, HttpTarget};

/// Whether secrets and credentials go along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Credentials {
    /// To the origin that the target names.
    Sent,
    /// Not beyond a redirect to another origin.
    Withheld,
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TASK: HeaderName = HeaderName::from_static("tourbillon-task");
const ATTEMPT: HeaderName = HeaderName::from_static("tourbillon-attempt");
const FENCE: HeaderName = HeaderName::from_static("tourbillon-fence");
const KIND: HeaderName = HeaderName::from_static("tourbillon-kind");
const QUEUE: HeaderName = HeaderName::from_static("tourbillon-queue");
const NAMESPACE: HeaderName = HeaderName::from_static("tourbillon-namespace");
const KEY: HeaderName = HeaderName::from_static("tourbillon-key");
const DUE_AT: HeaderName = HeaderName::from_static("tourbillon-due-at");
const SCHEDULE: HeaderName = HeaderName::from_static("tourbillon-schedule");
const LOGICAL_TIME: HeaderName = HeaderName::from_static("tourbillon-logical-time");

const RESERVED_PREFIX: &str = "tourbillon-";

/// Headers that frame a message or steer the connection.
const FRAMING: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The method and URL of `target`. What is wrong with them no further attempt can mend.
pub(super) fn line(target: &HttpTarget) -> Result<(Method, Url), Box<AttemptEnd>> {
    let reject = |error: String| Box::new(AttemptEnd::rejected(error));
    let method = Method::from_bytes(target.method.as_bytes())
        .ok()
        .filter(|m| *m != Method::CONNECT)
        .ok_or_else(|| {
            reject(format!(
                "method: {:?} is not a method for a request; use one like POST",
                target.method
            ))
        })?;
    let url = Url::parse(&target.url).map_err(|e| reject(format!("url: {e}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(reject(format!(
            "url: {} is not a scheme for a request; use http or https",
            url.scheme()
        )));
    }
    Ok((method, url))
}

/// The request itself.
pub(super) fn build(
    method: &Method,
    mut url: Url,
    target: &HttpTarget,
    ctx: &AttemptContext,
    body: Option<Bytes>,
    secrets: &dyn Secrets,
    credentials: Credentials,
) -> Result<Request, Box<AttemptEnd>> {
    let mut headers = HeaderMap::with_capacity(target.headers.len() + 12);
    let basic = take_basic_authorization(&mut url);
    if let Some(basic) = basic.filter(|_| credentials == Credentials::Sent) {
        headers.insert(AUTHORIZATION, basic);
    }
    add_given(&mut headers, target, secrets, credentials, body.is_some())?;
    if body.is_some() && !headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    add_own(&mut headers, ctx)?;
    let mut request = Request::new(method.clone(), url);
    *request.headers_mut() = headers;
    *request.body_mut() = body.map(reqwest::Body::from);
    Ok(request)
}

/// The target's own headers.
fn add_given(
    headers: &mut HeaderMap,
    target: &HttpTarget,
    secrets: &dyn Secrets,
    credentials: Credentials,
    has_body: bool,
) -> Result<(), Box<AttemptEnd>> {
    let mut authorized = false;
    for (name, value) in &target.headers {
        let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
            return Err(Box::new(AttemptEnd::rejected(format!(
                "headers: {name:?} is not a header name"
            ))));
        };
        if is_own(&parsed) || (parsed == CONTENT_TYPE && !has_body) {
            continue;
        }
        let reference = value.strip_prefix(secret::PREFIX);
        let is_credential = reference.is_some()
            || parsed == AUTHORIZATION
            || parsed == COOKIE
            || parsed == PROXY_AUTHORIZATION;
        if is_credential && credentials == Credentials::Withheld {
            continue;
        }
        let parsed_value = match reference {
            None => HeaderValue::from_bytes(value.as_bytes()),
            Some(reference) => {
                let value = secrets
                    .secret(reference)
                    .map_err(|e| Box::new(AttemptEnd::failed(format!("header {parsed}: {e}"))))?;
                HeaderValue::from_bytes(value.reveal().as_bytes())
            }
        };
        let Ok(mut parsed_value) = parsed_value else {
            let error = format!("header {parsed}: its value has control characters");
            // A secret can be mended without the task.
            return Err(Box::new(if reference.is_some() {
                AttemptEnd::failed(error)
            } else {
                AttemptEnd::rejected(error)
            }));
        };
        parsed_value.set_sensitive(is_credential);
        if parsed == AUTHORIZATION && !authorized {
            // In place of what the URL says.
            authorized = true;
            headers.insert(parsed, parsed_value);
        } else {
            headers.append(parsed, parsed_value);
        }
    }
    Ok(())
}

/// The headers that only the node sets.
fn add_own(headers: &mut HeaderMap, ctx: &AttemptContext) -> Result<(), Box<AttemptEnd>> {
    let id = own_value("id", &ctx.task_id)?;
    headers.insert(IDEMPOTENCY_KEY, id.clone());
    headers.insert(TASK, id);
    headers.insert(ATTEMPT, HeaderValue::from(ctx.attempt));
    headers.insert(FENCE, HeaderValue::from(ctx.fence));
    headers.insert(KIND, own_value("kind", &ctx.kind)?);
    headers.insert(QUEUE, own_value("queue", &ctx.queue)?);
    headers.insert(NAMESPACE, own_value("namespace", &ctx.namespace)?);
    for (name, field, value) in [
        (KEY, "key", &ctx.key),
        (DUE_AT, "due_at", &ctx.due_at),
        (SCHEDULE, "schedule", &ctx.schedule),
        (LOGICAL_TIME, "logical_time", &ctx.logical_time),
    ] {
        if let Some(value) = value {
            headers.insert(name, own_value(field, value)?);
        }
    }
    Ok(())
}

fn own_value(field: &str, value: &str) -> Result<HeaderValue, Box<AttemptEnd>> {
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
        Box::new(AttemptEnd::rejected(format!(
            "{field}: it has control characters and cannot be sent in a header"
        )))
    })
}

fn is_own(name: &HeaderName) -> bool {
    // Parsed names are in lower case.
    *name == IDEMPOTENCY_KEY
        || name.as_str().starts_with(RESERVED_PREFIX)
        || FRAMING.contains(&name.as_str())
}

/// Takes user and password out of `url`, as a header.
fn take_basic_authorization(url: &mut Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decode =
        |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = decode(url.username());
    let password = decode(url.password().unwrap_or(""));
    // They can be set on every URL with a host, which http URLs have.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let mut value = HeaderValue::from_str(&format!("Basic {}", base64(&user, &password))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn base64(user: &str, password: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"))
}
