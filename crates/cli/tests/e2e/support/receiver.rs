//! A receiver of webhooks in the test's own process, which remembers every call.
//!
//! The path says how it answers: `/hold` not before [`Receiver::release`], `/status/503` with that
//! status, anything else at once with 200. It outlives servers that are killed.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use tokio::sync::watch;

use super::now;

/// One call, as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) path: String,
    /// The idempotency key, which is the task's id.
    pub(crate) key: String,
    pub(crate) attempt: u32,
    pub(crate) fence: u64,
    pub(crate) due_at: i64,
    pub(crate) logical: Option<i64>,
    /// When it came in, in microseconds since the Unix epoch.
    pub(crate) at: i64,
    pub(crate) body: String,
}

#[derive(Clone)]
pub(crate) struct Receiver {
    url: String,
    calls: Arc<Mutex<Vec<Call>>>,
    /// How many calls there were.
    count: Arc<watch::Sender<usize>>,
    held: Arc<watch::Sender<bool>>,
}

impl Receiver {
    /// Starts it; it serves as long as the test's runtime lives.
    pub(crate) async fn start() -> Receiver {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let receiver = Receiver {
            url: format!("http://{}", listener.local_addr().expect("an address")),
            calls: Arc::default(),
            count: Arc::new(watch::channel(0).0),
            held: Arc::new(watch::channel(true).0),
        };
        let app = Router::new().fallback(receive).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        receiver
    }

    /// A target that calls it.
    pub(crate) fn target(&self, path: &str) -> serde_json::Value {
        serde_json::json!({"http": {"method": "POST", "url": format!("{}{path}", self.url)}})
    }

    /// Lets the calls to `/hold` go, those that are waiting and those to come.
    pub(crate) fn release(&self) {
        self.held.send_replace(false);
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.lock().clone()
    }

    /// How many calls there were to this path.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.lock().iter().filter(|call| call.path == path).count()
    }

    /// Waits until the calls are as wanted, and gives them.
    pub(crate) async fn until(
        &self,
        what: &str,
        seconds: u64,
        wanted: impl Fn(&[Call]) -> bool,
    ) -> Vec<Call> {
        let mut count = self.count.subscribe();
        let wait = async {
            while !wanted(&self.lock()) {
                count.changed().await.expect("the receiver holds the sender");
            }
        };
        let waited = tokio::time::timeout(std::time::Duration::from_secs(seconds), wait).await;
        assert!(
            waited.is_ok(),
            "{what}: not within {seconds} s; there were {} calls",
            self.lock().len()
        );
        self.calls()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Call>> {
        self.calls.lock().expect("no holder panics")
    }
}

async fn receive(State(receiver): State<Receiver>, request: Request) -> StatusCode {
    let mut call = read(&request);
    let path = call.path.clone();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap_or_default();
    call.body = String::from_utf8_lossy(&body).into_owned();
    receiver.lock().push(call);
    receiver.count.send_modify(|n| *n += 1);
    if path == "/hold" {
        // Fails only when the receiver is gone.
        let _ = receiver.held.subscribe().wait_for(|held| !held).await;
    }
    let status = path.strip_prefix("/status/").and_then(|s| s.parse().ok());
    status.and_then(|s| StatusCode::from_u16(s).ok()).unwrap_or(StatusCode::OK)
}

/// A call but for its body.
fn read(request: &Request) -> Call {
    let at = now();
    let header = |name: &str| {
        request.headers().get(name).map(|v| v.to_str().expect("a header in ASCII").to_owned())
    };
    let number = |name: &str| header(name).expect(name).parse::<u64>().expect(name);
    Call {
        path: request.uri().path().to_owned(),
        key: header("idempotency-key").expect("idempotency-key"),
        attempt: u32::try_from(number("tourbillon-attempt")).expect("a small number"),
        fence: number("tourbillon-fence"),
        due_at: super::parse(&header("tourbillon-due-at").expect("tourbillon-due-at")),
        logical: header("tourbillon-logical-time").map(|t| super::parse(&t)),
        at,
        body: String::new(),
    }
}
