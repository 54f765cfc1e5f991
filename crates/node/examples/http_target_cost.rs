//! What an `http` attempt costs: the runner against a bare hyper client, both calling a hyper
//! server on loopback. Prints one line per subject and concurrency; times are wall time per call
//! with everything, client and server, on one thread.
//!
//! `cargo run --release -p tourbillon-node --example http_target_cost`

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tourbillon_clock::SystemClock;
use tourbillon_node::targets::http::{HttpLimits, HttpRunner};
use tourbillon_node::targets::secret::NodeSecrets;
use tourbillon_node::targets::{AttemptContext, AttemptOutcome, HttpTarget};

const CALLS: usize = 40_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let url = format!("http://{}/hook", listener.local_addr().expect("address"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(|request: Request<Incoming>| async {
                let _ = request.into_body().collect().await;
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    let limits = HttpLimits { allow_private: true, ..HttpLimits::default() };
    let runner =
        HttpRunner::new(limits, Arc::new(NodeSecrets::new(None)), Arc::new(SystemClock::new()))
            .expect("runner");
    let bare: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    for round in 1..=3 {
        for at_once in [1, 64] {
            let us = each(at_once, {
                let (runner, url) = (runner.clone(), url.clone());
                move || {
                    let (runner, url) = (runner.clone(), url.clone());
                    async move {
                        let end = runner.run(target(url), context()).await;
                        assert_eq!(end.outcome, AttemptOutcome::Succeeded, "{end:?}");
                    }
                }
            })
            .await;
            println!("round {round}  runner      {at_once:>2} at once  {us:>6.1} µs/call");
            let us = each(at_once, {
                let (bare, url) = (bare.clone(), url.clone());
                move || {
                    let (bare, url) = (bare.clone(), url.clone());
                    async move {
                        let body = Full::new(Bytes::from(payload()));
                        let request = Request::post(url).body(body).expect("request");
                        let response = bare.request(request).await.expect("response");
                        response.into_body().collect().await.expect("body");
                    }
                }
            })
            .await;
            println!("round {round}  bare hyper  {at_once:>2} at once  {us:>6.1} µs/call");
        }
    }
}

/// Microseconds per call of `CALLS` calls, `at_once` at a time.
async fn each<F: Future<Output = ()> + Send + 'static>(
    at_once: usize,
    call: impl Fn() -> F + Clone + Send + 'static,
) -> f64 {
    let started = Instant::now();
    let lines: Vec<_> = (0..at_once)
        .map(|_| {
            let call = call.clone();
            tokio::spawn(async move {
                for _ in 0..CALLS / at_once {
                    call().await;
                }
            })
        })
        .collect();
    for line in lines {
        line.await.expect("line");
    }
    started.elapsed().as_secs_f64() * 1e6 / CALLS as f64
}

fn payload() -> String {
    r#"{"order":42,"items":[1,2,3]}"#.to_owned()
}

fn target(url: String) -> HttpTarget {
    HttpTarget {
        method: "POST".to_owned(),
        url,
        headers: vec![("X-Source".to_owned(), "shop".to_owned())],
    }
}

fn context() -> AttemptContext {
    AttemptContext {
        task_id: "01890a5d-ac96-774b-bcce-b302099a8057".to_owned(),
        attempt: 1,
        fence: 1 << 40,
        kind: "close-order".to_owned(),
        queue: "default".to_owned(),
        namespace: "default".to_owned(),
        key: None,
        due_at: None,
        schedule: None,
        logical_time: None,
        timeout: Duration::from_secs(30),
        payload: Some(payload()),
        cancel: CancellationToken::new(),
    }
}
