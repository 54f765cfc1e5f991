//! Who may come in.
//!
//! What always holds: a request is answered only when it is addressed to a name of this server
//! (so that a foreign name pointed at this address leads nowhere), when it does not come from
//! another site's page, and when it shows the token wherever that is needed. Commands need the
//! token everywhere; that is judged where a target is read, by [`Caller::trusted`].
//!
//! Deliberately absent: users and roles. There is one token.

use std::net::{IpAddr, SocketAddr};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, Method, Uri, header};
use subtle::ConstantTimeEq;
use tourbillon_wire::code;

use crate::ServeOptions;
use crate::failure::{Failure, Result};

/// The cookie in which the console keeps the token, as base64 so that it may have any character.
pub(crate) const COOKIE: &str = "tourbillon-token";

/// The rules of one server.
pub(crate) struct Doors {
    token: Option<String>,
    /// Whether every call needs the token.
    guarded: bool,
    listen: SocketAddr,
    /// Lower-case host names, without ports.
    hosts: Vec<String>,
}

/// What is known of who calls. Among the extensions of every request that was let in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// Whether the token was shown.
    pub(crate) trusted: bool,
    /// Where the call comes from, when it came over a socket.
    pub(crate) peer: Option<SocketAddr>,
}

impl Caller {
    /// Who calls, in a few words: where from, and whether the token was shown.
    pub(crate) fn actor(&self) -> String {
        let from = self.peer.map_or_else(|| "local".to_owned(), |peer| peer.ip().to_string());
        if self.trusted { format!("{from} (token)") } else { from }
    }
}

/// The two ends of a connection. Among the extensions of requests that come over a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
}

impl Doors {
    pub(crate) fn new(options: &ServeOptions) -> Doors {
        let hosts = options.allow_hosts.iter().chain(&options.advertise);
        Doors {
            token: options.token.clone().filter(|t| !t.is_empty()),
            guarded: !options.listen.ip().is_loopback(),
            listen: options.listen,
            hosts: hosts.map(|h| host_of(h).to_ascii_lowercase()).collect(),
        }
    }

    /// Lets a request in, or says why not.
    pub(crate) fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        ends: Option<Ends>,
    ) -> Result<Caller> {
        let peer = ends.map(|e| e.peer);
        let path = uri.path();
        if path == "/healthz" || path == "/readyz" {
            return Ok(Caller { trusted: false, peer });
        }
        let host = self.check_host(uri, headers, ends)?;
        check_origin(method, headers, host)?;
        let trusted = self.check_token(headers)?;
        // The page that asks for the token, and what it looks like, are for everyone.
        let open =
            path == "/login" || path.starts_with("/assets/") || path.starts_with("/language/");
        if self.guarded && !trusted && !open {
            return Err(Failure::new(401, code::UNAUTHORIZED)
                .detail("the token is missing")
                .expected("the header `Authorization: Bearer` with the server's token"));
        }
        Ok(Caller { trusted, peer })
    }

    fn check_host<'a>(
        &self,
        uri: &'a Uri,
        headers: &'a HeaderMap,
        ends: Option<Ends>,
    ) -> Result<&'a str> {
        let header = headers.get(header::HOST).and_then(|h| h.to_str().ok());
        let named = header.or(uri.authority().map(|a| a.as_str())).unwrap_or_default();
        let host = host_of(named);
        let ours = |ip: IpAddr| {
            ip == self.listen.ip()
                || ip.is_loopback()
                || ends.is_some_and(|e| e.local.ip().to_canonical() == ip.to_canonical())
        };
        let allowed = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) => ours(ip) || self.is_named(host),
            Err(_) => is_localhost(host) || self.is_named(host),
        };
        if allowed && !host.is_empty() {
            return Ok(named);
        }
        Err(Failure::new(403, code::HOST_NOT_ALLOWED)
            .field("Host")
            .detail(format!(
                "`{}` is not a name of this server",
                crate::convert::name::short(named)
            ))
            .expected(
                "the address it listens on, a loopback name, or a name given by `--allow-host`",
            ))
    }

    fn is_named(&self, host: &str) -> bool {
        self.hosts.iter().any(|h| h.eq_ignore_ascii_case(host))
    }

    /// Whether the token was shown. A wrong one is refused even where none is needed, so that a
    /// mistake does not go unnoticed.
    fn check_token(&self, headers: &HeaderMap) -> Result<bool> {
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let shown = value.to_str().ok().and_then(|v| {
                let (scheme, token) = v.split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
            });
            return match shown {
                Some(token) if self.is_token(token) => Ok(true),
                _ => Err(Failure::new(401, code::UNAUTHORIZED)
                    .detail("the token is wrong")
                    .expected("the header `Authorization: Bearer` with the server's token")),
            };
        }
        let kept = cookie(headers, COOKIE).and_then(|value| URL_SAFE_NO_PAD.decode(value).ok());
        Ok(kept.is_some_and(|token| self.is_same(&token)))
    }

    /// Whether a text is the token; takes the same time wherever they differ.
    pub(crate) fn is_token(&self, shown: &str) -> bool {
        self.is_same(shown.as_bytes())
    }

    fn is_same(&self, shown: &[u8]) -> bool {
        let Some(token) = &self.token else { return false };
        token.as_bytes().ct_eq(shown).into()
    }
}

/// A page of another site may not call: `Origin`, when sent, is the host that is called.
fn check_origin(method: &Method, headers: &HeaderMap, host: &str) -> Result<()> {
    let foreign = |detail: String| {
        Err(Failure::new(403, code::ORIGIN_NOT_ALLOWED)
            .field("Origin")
            .detail(detail)
            .expected("a call from a page of this server, or from a program"))
    };
    if let Some(origin) = headers.get(header::ORIGIN) {
        let text = origin.to_str().unwrap_or_default();
        let (scheme, authority) = text.split_once("://").unwrap_or(("", ""));
        if authority.is_empty() || !same_authority(scheme, authority, host) {
            return foreign(format!("`{}` is another site", crate::convert::name::short(text)));
        }
    }
    let site = headers.get("sec-fetch-site").and_then(|s| s.to_str().ok());
    if matches!(site, Some("cross-site" | "same-site")) && !method.is_safe() {
        return foreign("the browser says that another site calls".to_owned());
    }
    Ok(())
}

fn same_authority(scheme: &str, a: &str, b: &str) -> bool {
    let default = if scheme == "https" { ":443" } else { ":80" };
    let bare = |text: &str| text.strip_suffix(default).unwrap_or(text).to_ascii_lowercase();
    bare(a) == bare(b)
}

/// `localhost` and the names below it always mean this machine.
fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// The host of `host`, `host:port`, `[v6]` or `[v6]:port`; brackets stay.
fn host_of(authority: &str) -> &str {
    let text = authority.rsplit_once("//").map_or(authority, |(_, rest)| rest);
    if text.starts_with('[') {
        return text.split_inclusive(']').next().unwrap_or(text);
    }
    match text.split_once(':') {
        // More than one colon: an IPv6 address without brackets.
        Some((host, port)) if !port.contains(':') => host,
        _ => text,
    }
}

/// The value of a cookie.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|v| v.to_str().ok());
    lines
        .flat_map(|line| line.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doors(listen: &str) -> Doors {
        Doors::new(&ServeOptions {
            listen: listen.parse().unwrap(),
            token: Some("s3cret".into()),
            allow_hosts: vec!["Tasks.example".into()],
            advertise: Some("10.1.2.3:7070".into()),
            ..ServeOptions::default()
        })
    }

    fn status(doors: &Doors, method: &str, headers: &[(&str, &str)]) -> (u16, bool) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, value.parse().unwrap());
        }
        let method = method.parse().unwrap();
        match doors.check(&method, &Uri::from_static("/v1/tasks"), &map, None) {
            Ok(caller) => (200, caller.trusted),
            Err(failure) => (failure.status(), false),
        }
    }

    /// A page of another site can have a browser call a loopback address, under a name of its own
    /// that it has made to mean 127.0.0.1 (DNS rebinding). It cannot choose the `Host` and
    /// `Origin` that the browser sends.
    #[test]
    fn foreign_names_and_sites_stay_outside() {
        let local = doors("127.0.0.1:7070");
        for (host, expected) in [
            ("127.0.0.1:7070", 200),
            ("localhost:7070", 200),
            ("LOCALHOST", 200),
            ("[::1]:7070", 200),
            ("127.8.8.8", 200),
            ("tasks.example:80", 200),
            ("10.1.2.3:7070", 200),
            ("app.localhost", 200),
            ("evil.example:7070", 403),
            ("127.0.0.1.evil.example", 403),
            ("localhost.evil.example", 403),
            ("10.1.2.4", 403),
            ("", 403),
        ] {
            assert_eq!(status(&local, "GET", &[("host", host)]).0, expected, "{host}");
        }
        assert_eq!(status(&local, "GET", &[]).0, 403);
        for (origin, expected) in [
            ("http://127.0.0.1:7070", 200),
            ("http://127.0.0.1:7071", 403),
            ("http://localhost:7070", 403),
            ("https://evil.example", 403),
            ("null", 403),
        ] {
            let headers = [("host", "127.0.0.1:7070"), ("origin", origin)];
            assert_eq!(status(&local, "POST", &headers).0, expected, "{origin}");
        }
        let crossed = [("host", "localhost"), ("sec-fetch-site", "cross-site")];
        assert_eq!(status(&local, "POST", &crossed).0, 403);
        assert_eq!(status(&local, "GET", &crossed).0, 200);
    }

    #[test]
    fn the_token_opens_what_needs_it() {
        let local = doors("127.0.0.1:7070");
        let open = doors("0.0.0.0:7070");
        let host = ("host", "tasks.example");
        for (shown, at_home, abroad) in [
            (None, (200, false), (401, false)),
            (Some(("authorization", "Bearer s3cret")), (200, true), (200, true)),
            (Some(("authorization", "bearer s3cret")), (200, true), (200, true)),
            (Some(("authorization", "Bearer s3cre")), (401, false), (401, false)),
            (Some(("authorization", "Basic s3cret")), (401, false), (401, false)),
            (Some(("cookie", "a=b; tourbillon-token=czNjcmV0")), (200, true), (200, true)),
            (Some(("cookie", "tourbillon-token=s3cret")), (200, false), (401, false)),
        ] {
            let headers: Vec<_> = [host].into_iter().chain(shown).collect();
            assert_eq!(status(&local, "GET", &headers), at_home, "{shown:?}");
            assert_eq!(status(&open, "GET", &headers), abroad, "{shown:?}");
        }
    }
}
