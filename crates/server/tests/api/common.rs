//! A server to call.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tourbillon_node::{Node, NodeOptions};
use tourbillon_server::{ServeOptions, serve};
use tourbillon_store::memory::MemoryStore;

/// The token of the servers of these tests.
pub(crate) const TOKEN: &str = "a-token-for-tests";

/// How long anything may take to come true.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server on a port of its own.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) node: Node,
    client: Client,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<std::io::Result<()>>,
}

/// A reply, read.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) async fn read(response: Response) -> Reply {
        Reply {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The reply, when it has this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Reply {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    /// The code and the field of the problem document.
    #[track_caller]
    pub(crate) fn problem(&self) -> (u16, String, String) {
        let media = self.headers.get("content-type").map(|v| v.to_str().unwrap());
        assert_eq!(media, Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
        assert!(!text("title").is_empty() && !text("type").is_empty(), "{self:?}");
        (self.status, text("code"), text("field"))
    }

    /// The header called `name`.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
}

impl Server {
    pub(crate) async fn start() -> Server {
        Server::with(ServeOptions { token: Some(TOKEN.to_owned()), ..ServeOptions::default() })
            .await
    }

    pub(crate) async fn with(options: ServeOptions) -> Server {
        let store = Arc::new(MemoryStore::new());
        let settings = NodeOptions { allow_private_targets: true, ..NodeOptions::default() };
        let node = Node::start(settings, store.clone(), store).await.unwrap();
        let ready = node.clone();
        until("the node is ready", async || ready.status().ready.is_ok()).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(serve(listener, node.clone(), options, async {
            let _ = stopped.await;
        }));
        let client = client();
        Server { address, node, client, stop: Some(stop), running }
    }

    /// Begins to shut down, and gives back what `serve` will answer.
    pub(crate) fn stop(mut self) -> JoinHandle<std::io::Result<()>> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        self.running
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address))
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        Reply::read(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        Reply::read(self.request(Method::DELETE, path).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.send(Method::POST, path, &body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.send(Method::PUT, path, &body.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Reply {
        self.send(Method::PATCH, path, &body.to_string()).await
    }

    /// A call without a body.
    pub(crate) async fn act(&self, path: &str) -> Reply {
        Reply::read(self.request(Method::POST, path).send().await.unwrap()).await
    }

    /// A call with a JSON text.
    pub(crate) async fn send(&self, method: Method, path: &str, body: &str) -> Reply {
        let request = self.request(method, path).header("content-type", "application/json");
        Reply::read(request.body(body.to_owned()).send().await.unwrap()).await
    }

    /// A form of the console, sent as its own pages do.
    pub(crate) async fn form(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let body =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self
            .request(Method::POST, path)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("origin", format!("http://{}", self.address))
            .header("accept", "text/html");
        Reply::read(request.body(body).send().await.unwrap()).await
    }

    /// A page, as a browser asks for it.
    pub(crate) async fn page(&self, path: &str) -> Reply {
        let request = self.request(Method::GET, path).header("accept", "text/html,*/*");
        Reply::read(request.send().await.unwrap()).await
    }

    /// Creates a task and gives back its id.
    pub(crate) async fn create(&self, task: Value) -> String {
        let reply = self.post("/v1/tasks", task).await.expect(201);
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    /// The task once it is in this state.
    pub(crate) async fn when(&self, id: &str, state: &str) -> Value {
        let path = format!("/v1/tasks/{id}");
        let reached = async || self.get(&path).await.json()["state"] == state;
        until(&format!("{id} is {state}"), reached).await;
        self.get(&path).await.json()
    }

    /// Claims one task of a queue as `worker`.
    pub(crate) async fn claim(&self, queue: &str) -> Value {
        let ask = json!({"max": 1, "wait": "20s", "worker": "w"});
        let reply = self.post(&format!("/v1/queues/{queue}/claim"), ask).await.expect(200);
        reply.json()["tasks"][0].clone()
    }
}

/// A client that follows no redirects. The workspace's reqwest wants its TLS chosen, though nothing
/// here uses it.
pub(crate) fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < end, "in {PATIENCE:?} it did not come true that {what}");
        tokio::task::yield_now().await;
    }
}

/// A task for workers, due now.
pub(crate) fn work() -> Value {
    json!({"target": {"worker": {}}})
}

/// A task for workers, due in an hour.
pub(crate) fn later() -> Value {
    json!({"target": {"worker": {}}, "delay": "1h"})
}

/// `base` with further fields.
pub(crate) fn with(mut base: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        base[name] = value.clone();
    }
    base
}
