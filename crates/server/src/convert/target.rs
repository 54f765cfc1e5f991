//! Targets, both ways.

use http::{HeaderName, HeaderValue, Method};
use tourbillon_store::task::{CommandTarget, HttpTarget, Target};
use tourbillon_wire as wire;
use tourbillon_wire::{Pairs, code};

use super::name::short;
use crate::Limits;
use crate::failure::{Failure, Result};

/// Headers that the node writes itself, or that belong to one connection.
const RESERVED: [&str; 9] = [
    "connection",
    "content-length",
    "idempotency-key",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A target that can be tried.
pub(crate) fn target(given: wire::Target, limits: &Limits) -> Result<Target> {
    match given {
        wire::Target::Worker(_) => Ok(Target::Worker),
        wire::Target::Http(t) => {
            http(t, limits).map(Target::Http).map_err(|f| f.under("target.http"))
        }
        wire::Target::Command(t) => {
            command(t, limits).map(Target::Command).map_err(|f| f.under("target.command"))
        }
    }
}

fn http(given: wire::HttpTarget, limits: &Limits) -> Result<HttpTarget> {
    let method = match given.method {
        None => "POST".to_owned(),
        Some(method) => checked_method(method)?,
    };
    check_url(&given.url, limits)?;
    at_most(given.headers.len(), "headers", "headers", limits.headers)?;
    for (name, value) in given.headers.iter() {
        check_header(name, value, limits).map_err(|f| f.under("headers"))?;
    }
    let headers = given.headers.into_vec();
    Ok(HttpTarget { method, url: given.url, headers })
}

fn checked_method(mut method: String) -> Result<String> {
    method.make_ascii_uppercase();
    let token = method.len() <= 32 && Method::from_bytes(method.as_bytes()).is_ok();
    if !token || method == "CONNECT" || method == "TRACE" {
        return Err(Failure::invalid(
            "method",
            format!("`{}` is not a method that can be used", short(&method)),
            "such as GET, POST, PUT, PATCH or DELETE",
        ));
    }
    Ok(method)
}

fn check_url(text: &str, limits: &Limits) -> Result<()> {
    let wrong = |what: String| {
        Err(Failure::invalid("url", what, "an absolute URL such as `https://example.com/path`"))
    };
    if text.len() > limits.url_bytes {
        return wrong(format!("it has {} bytes, more than {}", text.len(), limits.url_bytes));
    }
    if text.chars().any(char::is_control) || text.trim() != text {
        return wrong("it has a control character or a space at an end".to_owned());
    }
    match url::Url::parse(text) {
        Err(error) => wrong(format!("`{}`: {error}", short(text))),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            wrong(format!("the scheme is `{}`, not `http` or `https`", url.scheme()))
        }
        Ok(url) if url.host_str().is_none_or(str::is_empty) => wrong("it has no host".to_owned()),
        Ok(_) => Ok(()),
    }
}

fn check_header(name: &str, value: &str, limits: &Limits) -> Result<()> {
    let quoted = short(name);
    let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
        let detail = format!("`{quoted}` is not a header name");
        return Err(Failure::invalid(quoted, detail, "letters, digits and `-`"));
    };
    if RESERVED.contains(&parsed.as_str()) || parsed.as_str().starts_with("tourbillon-") {
        return Err(Failure::invalid(
            quoted,
            "this header is written by the server",
            "another header",
        ));
    }
    if value.len() > limits.header_bytes || HeaderValue::from_str(value).is_err() {
        return Err(Failure::invalid(
            quoted,
            "the value has a control character or is too long",
            format!("at most {} bytes without control characters", limits.header_bytes),
        ));
    }
    Ok(())
}

fn command(given: wire::CommandTarget, limits: &Limits) -> Result<CommandTarget> {
    if given.argv.first().is_none_or(String::is_empty) {
        return Err(Failure::invalid(
            "argv",
            "there is no program",
            "the program and its arguments",
        ));
    }
    at_most(given.argv.len(), "argv", "arguments", limits.arguments)?;
    at_most(given.env.len(), "env", "variables", limits.arguments)?;
    for (index, argument) in given.argv.iter().enumerate() {
        no_nul(argument, || format!("argv[{index}]"))?;
    }
    for (name, value) in given.env.iter() {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Failure::invalid(
                "env",
                format!("`{}` is not a name of a variable", short(name)),
                "a name without `=` and NUL",
            ));
        }
        no_nul(value, || format!("env.{}", short(name)))?;
    }
    if let Some(cwd) = &given.cwd {
        if cwd.is_empty() {
            return Err(Failure::invalid("cwd", "it is empty", "a folder, or nothing"));
        }
        no_nul(cwd, || "cwd".to_owned())?;
    }
    let bytes = given.argv.iter().map(String::len).sum::<usize>()
        + given.env.iter().map(|(n, v)| n.len() + v.len()).sum::<usize>()
        + given.cwd.as_ref().map_or(0, String::len)
        + given.stdin.as_ref().map_or(0, String::len);
    if bytes > limits.payload_bytes {
        return Err(Failure::new(413, code::TOO_LARGE)
            .field("")
            .detail(format!("arguments, environment and input have {bytes} bytes"))
            .expected(format!("at most {} bytes together", limits.payload_bytes)));
    }
    Ok(CommandTarget {
        argv: given.argv,
        env: given.env.into_vec(),
        cwd: given.cwd,
        stdin: given.stdin,
    })
}

fn no_nul(text: &str, field: impl Fn() -> String) -> Result<()> {
    if text.contains('\0') {
        return Err(Failure::invalid(field(), "it has a NUL character", "text without NUL"));
    }
    Ok(())
}

fn at_most(n: usize, field: &str, what: &str, most: usize) -> Result<()> {
    if n > most {
        return Err(Failure::invalid(field, format!("{n} {what}"), format!("at most {most}")));
    }
    Ok(())
}

/// A target as shown.
pub(crate) fn show(target: &Target) -> wire::Target {
    match target {
        Target::Worker => wire::Target::worker(),
        Target::Http(t) => wire::Target::Http(wire::HttpTarget {
            method: Some(t.method.clone()),
            url: t.url.clone(),
            headers: pairs(&t.headers),
        }),
        Target::Command(t) => wire::Target::Command(wire::CommandTarget {
            argv: t.argv.clone(),
            env: pairs(&t.env),
            cwd: t.cwd.clone(),
            stdin: t.stdin.clone(),
        }),
    }
}

pub(crate) fn pairs(list: &[(String, String)]) -> Pairs {
    list.iter().cloned().collect()
}
