//! One HTTP call: its address, its tries, its reply.
//!
//! The only file that knows reqwest, besides the stream of events. Redirects are not followed: the
//! token would go along.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tourbillon_wire::Problem;

use crate::{ClientConfig, ClientError};

/// A client of one server. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    config: Arc<ClientConfig>,
    authorization: Option<HeaderValue>,
}

/// Whether a call may be made twice without harm.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    Safe,
    Never,
}

/// A call about to be made.
pub(crate) struct Call<'a> {
    client: &'a Client,
    method: Method,
    url: Url,
    body: Option<(&'static str, Vec<u8>)>,
    repeat: Repeat,
    extra_timeout: Duration,
}

impl Client {
    /// Sets a client up; connects to nothing yet.
    ///
    /// # Errors
    /// When the URL is not an absolute `http` or `https` URL, the token cannot be a header, or the
    /// system's certificates cannot be read (for `https`).
    pub fn new(config: ClientConfig) -> Result<Client, ClientError> {
        let base = Url::parse(&config.url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                ClientError::setup(format!(
                    "url: `{}` is not the URL of a server; expected such as `http://127.0.0.1:7070`",
                    config.url
                ))
            })?;
        let authorization = match &config.token {
            Some(token) => {
                let mut value =
                    HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
                        ClientError::setup("token: it has characters that no token has")
                    })?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(base.scheme() == "https")?)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(config.connect_timeout)
            .user_agent(concat!("tourbillon-client/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| ClientError::setup(format!("the HTTP client cannot be set up: {e}")))?;
        Ok(Client { http, base, config: Arc::new(config), authorization })
    }

    /// The server's URL.
    pub fn url(&self) -> &str {
        self.base.as_str()
    }

    /// What the client was set up with.
    pub fn config(&self) -> &ClientConfig {
        &self.config
    }

    pub(crate) fn get(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::GET, path, Repeat::Safe)
    }

    pub(crate) fn put(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::PUT, path, Repeat::Safe)
    }

    pub(crate) fn patch(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::PATCH, path, Repeat::Never)
    }

    pub(crate) fn delete(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::DELETE, path, Repeat::Safe)
    }

    pub(crate) fn post(&self, path: &[&str], repeat: Repeat) -> Call<'_> {
        self.call(Method::POST, path, repeat)
    }

    fn call(&self, method: Method, path: &[&str], repeat: Repeat) -> Call<'_> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if path.first() == Some(&"v1")
            && let Some(namespace) = &self.config.namespace
        {
            url.query_pairs_mut().append_pair("namespace", namespace);
        }
        Call { client: self, method, url, body: None, repeat, extra_timeout: Duration::ZERO }
    }
}

impl Call<'_> {
    /// With the fields of `query` as parameters; its own namespace, if any, must be empty.
    pub(crate) fn query<T: Serialize>(mut self, query: &T) -> Result<Self, ClientError> {
        let fields = serde_json::to_value(query)
            .map_err(|e| ClientError::setup(format!("the query cannot be written: {e}")))?;
        for (name, value) in fields.as_object().into_iter().flatten() {
            match value {
                serde_json::Value::Null => {}
                serde_json::Value::String(text) => {
                    self.url.query_pairs_mut().append_pair(name, text);
                }
                other => {
                    self.url.query_pairs_mut().append_pair(name, &other.to_string());
                }
            }
        }
        Ok(self)
    }

    pub(crate) fn json<T: Serialize + ?Sized>(mut self, body: &T) -> Result<Self, ClientError> {
        let text = serde_json::to_vec(body)
            .map_err(|e| ClientError::setup(format!("the request cannot be written: {e}")))?;
        self.body = Some(("application/json", text));
        Ok(self)
    }

    /// Allows this much more time than other calls have.
    pub(crate) fn wait(mut self, wait: Duration) -> Self {
        self.extra_timeout = wait;
        self
    }

    /// Makes the call and reads its reply as a document.
    pub(crate) async fn read<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        let max = self.client.config.reply_bytes_max;
        let path = self.url.path().to_owned();
        let response = self.send().await?;
        let body = read_body(response, max).await?;
        serde_json::from_slice(&body).map_err(|e| {
            ClientError::reply(
                format!("the reply of {path} is not what was expected"),
                Some(e.into()),
            )
        })
    }

    /// Makes the call and drops its reply.
    pub(crate) async fn done(self) -> Result<(), ClientError> {
        self.send().await.map(drop)
    }

    /// Makes the call, again when that is safe and the server is busy, and gives a good reply or an
    /// error.
    pub(crate) async fn send(self) -> Result<Response, ClientError> {
        let config = &self.client.config;
        let timeout = config.timeout.saturating_add(self.extra_timeout);
        let mut tries = 0;
        loop {
            let result = self.once(Some(timeout)).await;
            tries += 1;
            match result {
                Err(error)
                    if self.repeat == Repeat::Safe
                        && error.status() == Some(503)
                        && tries <= config.retries_max =>
                {
                    let wait =
                        error.retry_after().unwrap_or(Duration::from_millis(200 << tries.min(8)));
                    if wait > config.retry_wait_max {
                        return Err(error);
                    }
                    tokio::time::sleep(wait).await;
                }
                other => return other,
            }
        }
    }

    /// Makes the call once, without a bound in time, for a reply that lasts.
    pub(crate) async fn open(self, accept: &'static str) -> Result<Response, ClientError> {
        let request = self.request().header(ACCEPT, accept);
        self.check(request.send().await).await
    }

    async fn once(&self, timeout: Option<Duration>) -> Result<Response, ClientError> {
        let mut request = self.request();
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        self.check(request.send().await).await
    }

    fn request(&self) -> RequestBuilder {
        let mut request = self.client.http.request(self.method.clone(), self.url.clone());
        if let Some(value) = &self.client.authorization {
            request = request.header(AUTHORIZATION, value.clone());
        }
        if let Some((content_type, body)) = &self.body {
            request = request.header(CONTENT_TYPE, *content_type).body(body.clone());
        }
        request
    }

    async fn check(&self, sent: reqwest::Result<Response>) -> Result<Response, ClientError> {
        let response = sent.map_err(|e| ClientError::transport(self.client.url(), e))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        // A reply that is no problem document, such as a proxy's page, is still an error to show.
        let body = read_body(response, PROBLEM_BYTES_MAX).await.unwrap_or_default();
        let mut problem = serde_json::from_slice::<Problem>(&body).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(&body);
            let first = text.lines().next().unwrap_or("").trim();
            let mut problem = Problem::new(status.as_u16(), &format!("http_{}", status.as_u16()));
            problem.title = status.canonical_reason().unwrap_or("unknown status").to_owned();
            if !first.is_empty() && !first.starts_with('<') {
                problem.detail = Some(first.chars().take(200).collect());
            }
            problem
        });
        problem.status = status.as_u16();
        Err(ClientError::from_problem(problem, retry_after))
    }
}

/// The largest problem document that is read.
const PROBLEM_BYTES_MAX: usize = 256 << 10;

pub(crate) async fn read_body(mut response: Response, max: usize) -> Result<Vec<u8>, ClientError> {
    let url = response.url().clone();
    let mut body = Vec::new();
    while let Some(chunk) =
        response.chunk().await.map_err(|e| ClientError::transport(url.as_str(), e))?
    {
        if body.len() + chunk.len() > max {
            return Err(ClientError::reply(
                format!("the reply of {} has more than {max} bytes", url.path()),
                None,
            ));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// TLS with the certificates of the system. They are read only when needed: a machine that talks
/// to a server in the clear may have none.
fn tls(needed: bool) -> Result<rustls::ClientConfig, ClientError> {
    use rustls_platform_verifier::BuilderVerifierExt;
    let setup = |e: rustls::Error| ClientError::setup(format!("TLS cannot be set up: {e}"));
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .map_err(setup)?;
    let builder = if needed {
        builder.with_platform_verifier().map_err(setup)?
    } else {
        builder.with_root_certificates(rustls::RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}
