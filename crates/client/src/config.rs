//! What a client is set up with; every bound with its default.

use std::time::Duration;

/// Where the server is, who we are, and how long to be patient.
#[derive(Clone)]
pub struct ClientConfig {
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) retries_max: u32,
    pub(crate) retry_wait_max: Duration,
    pub(crate) reply_bytes_max: usize,
}

impl ClientConfig {
    /// A client of the server at `url`, such as `http://127.0.0.1:7070`; no token, everything else
    /// by default.
    pub fn new(url: impl Into<String>) -> ClientConfig {
        ClientConfig {
            url: url.into(),
            token: None,
            namespace: None,
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            retries_max: 3,
            retry_wait_max: Duration::from_secs(10),
            reply_bytes_max: 64 << 20,
        }
    }

    /// The token sent with every call. Default: none.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> ClientConfig {
        self.token = Some(token.into());
        self
    }

    /// The namespace of every call. Default: left to the server, which takes `default`.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> ClientConfig {
        self.namespace = Some(namespace.into());
        self
    }

    /// How long one try of a call may take; a claim's own wait is added. Default: 30 s.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> ClientConfig {
        self.timeout = timeout;
        self
    }

    /// How long connecting may take. Default: 5 s.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> ClientConfig {
        self.connect_timeout = timeout;
        self
    }

    /// How often a call that is safe to repeat is made again on 503. Default: 3.
    #[must_use]
    pub fn with_retries_max(mut self, retries: u32) -> ClientConfig {
        self.retries_max = retries;
        self
    }

    /// The longest `Retry-After` that is waited for; a longer one is an error at once. Default: 10 s.
    #[must_use]
    pub fn with_retry_wait_max(mut self, wait: Duration) -> ClientConfig {
        self.retry_wait_max = wait;
        self
    }

    /// The largest reply that is read. Default: 64 MiB.
    #[must_use]
    pub fn with_reply_bytes_max(mut self, bytes: usize) -> ClientConfig {
        self.reply_bytes_max = bytes;
        self
    }
}

impl std::fmt::Debug for ClientConfig {
    /// Everything but the token, which no log should hold.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConfig")
            .field("url", &self.url)
            .field("token", &self.token.as_ref().map(|_| "(not shown)"))
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
