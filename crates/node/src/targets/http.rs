//! The `http` target: one request, its redirects, and an answer of which a little is kept.
//!
//! What always holds:
//! - 2xx is a success; 410 and 422 reject; everything else is a failure, with the `Retry-After` it
//!   came with.
//! - The whole exchange, redirects and body included, ends by the attempt's timeout.
//! - Of a body at most [`HttpLimits::kept_bytes`] are held in memory, and at most
//!   [`HttpLimits::discarded_bytes`] are read; a longer one costs the connection, nothing else.
//! - Unless private targets are allowed, no connection is made to an address that
//!   [`super::classify`] refuses: names are judged at the moment of connecting, after they were
//!   resolved, and every redirect is judged like the first request.
//! - Secrets and credentials are not carried to another origin by a redirect.
//! - Dropping the future closes the connection.
//!
//! What is deliberately absent: proxies, cookies, decompression, HTTP/2, retries.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::LOCATION;
use reqwest::{Client, Method, Response, StatusCode, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tourbillon_clock::Clock;

use super::secret::Secrets;
use super::{AttemptContext, AttemptEnd, HttpTarget, Output};

mod answer;
mod request;
mod resolver;
#[cfg(test)]
mod tests;

use answer::{cause, retry_after};
use request::Credentials;
use resolver::{AddressRule, GuardedResolver};

/// The bounds of requests, and what they may reach.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Whether requests may go to private, loopback, link-local and other addresses that are not
    /// public. Default `false`.
    pub allow_private: bool,
    /// Redirects followed. Default 5.
    pub redirects_max: u32,
    /// Bytes of a body that are kept. Default 1 KiB.
    pub kept_bytes: usize,
    /// Bytes of a body that are read at most, so that the connection can be used again; a longer
    /// body closes it. Default 64 KiB.
    pub discarded_bytes: usize,
    /// Time to make a connection, within the attempt's timeout. Default 10 s.
    pub connect_timeout: Duration,
    /// Idle connections kept to one host. Default 512.
    pub idle_connections_max: usize,
    /// How long an idle connection is kept. Default 4 s: below the 5 s after which common servers
    /// close theirs, since a request sent into a closing connection is a failed attempt.
    pub idle_timeout: Duration,
    /// Longest `Retry-After` that is believed; longer ones count as this. Default 7 days.
    pub retry_after_max: Duration,
    /// Certificates in PEM form that are trusted besides the bundled Mozilla roots. Default empty.
    pub extra_roots_pem: Vec<u8>,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            allow_private: false,
            redirects_max: 5,
            kept_bytes: 1024,
            discarded_bytes: 64 * 1024,
            connect_timeout: Duration::from_secs(10),
            idle_connections_max: 512,
            idle_timeout: Duration::from_secs(4),
            retry_after_max: Duration::from_secs(7 * 24 * 3_600),
            extra_roots_pem: Vec::new(),
        }
    }
}

/// Why a runner could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum HttpSetupError {
    /// [`HttpLimits::extra_roots_pem`] is not a list of certificates in PEM form.
    BadRoots(String),
    /// The TLS or HTTP client could not be set up.
    Client(String),
}

impl HttpSetupError {
    /// Whether the given certificates are at fault.
    pub fn is_bad_roots(&self) -> bool {
        matches!(self, Self::BadRoots(_))
    }
}

impl fmt::Display for HttpSetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadRoots(reason) => write!(
                f,
                "extra_roots_pem: {reason}; expected one or more certificates in PEM form"
            ),
            Self::Client(reason) => write!(f, "cannot set up the HTTP client: {reason}"),
        }
    }
}

impl std::error::Error for HttpSetupError {}

/// Makes requests. One for a node: it holds the pool of connections. Cheap to clone.
#[derive(Clone)]
pub struct HttpRunner {
    client: Client,
    limits: Arc<HttpLimits>,
    rule: Option<AddressRule>,
    secrets: Arc<dyn Secrets>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for HttpRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRunner").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl HttpRunner {
    /// A runner with its own pool. `clock` is asked for the wall time when a `Retry-After` is a
    /// date.
    ///
    /// # Errors
    /// When the extra roots are not certificates, or the client cannot be set up.
    pub fn new(
        limits: HttpLimits,
        secrets: Arc<dyn Secrets>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, HttpSetupError> {
        let rule: Option<AddressRule> =
            if limits.allow_private { None } else { Some(Arc::new(super::classify)) };
        Self::with_rule(limits, rule, secrets, clock)
    }

    fn with_rule(
        limits: HttpLimits,
        rule: Option<AddressRule>,
        secrets: Arc<dyn Secrets>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, HttpSetupError> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls(&limits.extra_roots_pem)?)
            .dns_resolver(Arc::new(GuardedResolver::new(rule.clone())))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .user_agent(concat!("tourbillon/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(limits.connect_timeout)
            .pool_max_idle_per_host(limits.idle_connections_max)
            .pool_idle_timeout(limits.idle_timeout)
            .tcp_nodelay(true)
            .build()
            .map_err(|e| HttpSetupError::Client(cause(&e)))?;
        Ok(Self { client, limits: Arc::new(limits), rule, secrets, clock })
    }

    /// Makes one attempt. Ends by `ctx.timeout`, at once when `ctx.cancel` is cancelled; dropping
    /// the future abandons the request.
    pub async fn run(&self, target: HttpTarget, mut ctx: AttemptContext) -> AttemptEnd {
        if ctx.cancel.is_cancelled() {
            return AttemptEnd::cancelled();
        }
        let timeout = ctx.timeout;
        let cancel = ctx.cancel.clone();
        let body = ctx.payload.take().map(Bytes::from);
        let mut seen = Seen::default();
        let end = tokio::select! {
            biased;
            end = self.exchange(&target, &ctx, body, &mut seen) => end,
            () = cancel.cancelled() => AttemptEnd::cancelled(),
            () = tokio::time::sleep(timeout) => AttemptEnd::timed_out(timeout),
        };
        AttemptEnd { http_status: seen.status, output: seen.output, ..end }
    }

    async fn exchange(
        &self,
        target: &HttpTarget,
        ctx: &AttemptContext,
        mut body: Option<Bytes>,
        seen: &mut Seen,
    ) -> AttemptEnd {
        let (mut method, mut url) = match request::line(target) {
            Ok(line) => line,
            Err(end) => return *end,
        };
        let mut credentials = Credentials::Sent;
        let mut hops_left = self.limits.redirects_max;
        loop {
            if let Some(refusal) = self.refusal(&url) {
                return AttemptEnd::failed(refusal);
            }
            let built = request::build(
                &method,
                url,
                target,
                ctx,
                body.clone(),
                &*self.secrets,
                credentials,
            );
            let request = match built {
                Ok(request) => request,
                Err(end) => return *end,
            };
            let response = match self.client.execute(request).await {
                Ok(response) => response,
                Err(error) => return AttemptEnd::failed(cause(&error)),
            };
            let status = response.status();
            seen.status = Some(status.as_u16());
            let next = match redirect(&response) {
                Ok(next) => next,
                Err(error) => return AttemptEnd::failed(error),
            };
            let from = next.as_ref().map(|_| response.url().clone());
            let retry_after = retry_after(response.headers(), self.clock.as_ref(), &self.limits);
            if let Err(error) = self.read_body(response, seen).await {
                return AttemptEnd::failed(format!(
                    "the answer broke off after status {} and {} bytes: {}",
                    status.as_u16(),
                    seen.output.total_bytes,
                    cause(&error)
                ));
            }
            let (Some(next), Some(from)) = (next, from) else {
                return verdict(status, retry_after);
            };
            if hops_left == 0 {
                return AttemptEnd::failed(format!(
                    "more than {} redirects",
                    self.limits.redirects_max
                ));
            }
            hops_left -= 1;
            if next.origin() != from.origin() {
                credentials = Credentials::Withheld;
            }
            if becomes_get(status, &method) {
                method = Method::GET;
                body = None;
            }
            url = next;
        }
    }

    /// Why `url` may not be called, as far as it can be said without resolving a name.
    fn refusal(&self, url: &Url) -> Option<String> {
        let rule = self.rule.as_ref()?;
        let host = url.host_str()?;
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        resolver::refusal(rule, host, literal.parse().ok()?)
    }

    /// Reads the body as far as the bounds allow, keeping its beginning.
    async fn read_body(
        &self,
        mut response: Response,
        seen: &mut Seen,
    ) -> Result<(), reqwest::Error> {
        seen.output = Output::default();
        let limits = &self.limits;
        let announced = response.content_length().unwrap_or(0);
        // Reading on only serves to use the connection again, which a long body rules out.
        let bound = if announced > limits.discarded_bytes as u64 {
            limits.kept_bytes
        } else {
            limits.discarded_bytes.max(limits.kept_bytes)
        };
        while let Some(chunk) = response.chunk().await? {
            let output = &mut seen.output;
            let room = limits.kept_bytes.saturating_sub(output.head.len());
            output.head.extend_from_slice(&chunk[..room.min(chunk.len())]);
            output.total_bytes += chunk.len() as u64;
            if output.total_bytes > bound as u64 {
                break;
            }
        }
        Ok(())
    }
}

/// What is known of the answer when the attempt ends, however it ends.
#[derive(Default)]
struct Seen {
    status: Option<u16>,
    output: Output,
}

fn verdict(status: StatusCode, retry_after: Option<Duration>) -> AttemptEnd {
    if status.is_success() {
        return AttemptEnd::succeeded();
    }
    let rejects = matches!(status, StatusCode::GONE | StatusCode::UNPROCESSABLE_ENTITY);
    AttemptEnd {
        reject: rejects,
        retry_after: if rejects { None } else { retry_after },
        ..AttemptEnd::failed(format!("answered {status}"))
    }
}

/// Where `response` redirects to, if it does.
fn redirect(response: &Response) -> Result<Option<Url>, String> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    match response.url().join(&location) {
        Ok(next) if matches!(next.scheme(), "http" | "https") => Ok(Some(next)),
        Ok(next) => Err(format!("redirected to a {} URL", next.scheme())),
        Err(error) => Err(format!("redirected to an invalid URL: {error}")),
    }
}

/// The rules of fetch: 303 turns all but HEAD into GET, 301 and 302 only POST.
fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        303 => *method != Method::HEAD && *method != Method::GET,
        301 | 302 => *method == Method::POST,
        _ => false,
    }
}

fn tls(extra_roots_pem: &[u8]) -> Result<rustls::ClientConfig, HttpSetupError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if !extra_roots_pem.is_empty() {
        let bad = |e: &dyn fmt::Display| HttpSetupError::BadRoots(e.to_string());
        let mut found = 0;
        for cert in CertificateDer::pem_slice_iter(extra_roots_pem) {
            roots.add(cert.map_err(|e| bad(&e))?).map_err(|e| bad(&e))?;
            found += 1;
        }
        if found == 0 {
            return Err(bad(&"no certificate in it"));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| HttpSetupError::Client(e.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
