//! What the tests of the binary share: running it, and a small server that answers by a function.

#![allow(dead_code)] // not every test file uses all of it

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use serde_json::Value;

/// The binary with a clean environment.
pub(crate) fn tourbillon(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tourbillon"));
    command.args(args).env_clear().env("HOME", "/nonexistent").env("TZ", "Asia/Shanghai");
    command
}

/// What a run came to.
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    fn from(output: Output) -> Run {
        Run {
            status: output.status.code().expect("it exits by itself"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Its lines of JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Runs the binary.
pub(crate) fn run(args: &[&str]) -> Run {
    Run::from(tourbillon(args).stdin(Stdio::null()).output().unwrap())
}

/// Runs the binary with text on standard input.
pub(crate) fn run_with(mut command: Command, input: &str) -> Run {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let feeder = std::thread::spawn(move || {
        // A command that fails early reads no further.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    Run::from(output)
}

/// A request that the server has seen.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: String,
}

type Answers = dyn Fn(&Seen) -> (u16, Value) + Send + Sync;

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    answers: Arc<Answers>,
}

/// Serves for the rest of the test. Needs a runtime with more than one thread, because tests wait for
/// the binary.
pub(crate) async fn serve(
    answers: impl Fn(&Seen) -> (u16, Value) + Send + Sync + 'static,
) -> Server {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server {
        url: format!("http://{}", listener.local_addr().unwrap()),
        seen: Arc::default(),
        answers: Arc::new(answers),
    };
    let app = Router::new().fallback(respond).with_state(server.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    server
}

async fn respond(State(server): State<Server>, request: Request) -> Response<Body> {
    let line = format!("{} {}", request.method(), request.uri());
    let authorization =
        request.headers().get("authorization").map(|v| v.to_str().unwrap().to_owned());
    let body = to_bytes(request.into_body(), 64 << 20).await.unwrap();
    let seen = Seen { line, authorization, body: String::from_utf8(body.to_vec()).unwrap() };
    let (status, body) = (server.answers)(&seen);
    server.seen.lock().unwrap().push(seen);
    let text = match body {
        Value::String(text) => text,
        body => body.to_string(),
    };
    Response::builder().status(status).body(Body::from(text)).unwrap()
}

impl Server {
    /// Runs the binary against this server.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run::from(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    /// The binary, set up for this server.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = tourbillon(args);
        command.env("TOURBILLON_URL", &self.url);
        command
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }
}
