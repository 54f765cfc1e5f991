//! Requests against real local servers, well-behaved and not.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tourbillon_clock::ManualClock;

use super::*;
use crate::targets::secret::{SecretError, SecretValue};
use crate::targets::{AddressClass, AttemptOutcome};

type Answer = hyper::Response<Full<Bytes>>;

/// A request as a server saw it.
struct Got {
    method: String,
    path: String,
    headers: hyper::HeaderMap,
    body: Bytes,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|v| v.to_str().unwrap())
    }
}

struct Server {
    addr: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    async fn start(answer: impl Fn(&Got) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_on("127.0.0.1", answer).await
    }

    async fn start_on(ip: &str, answer: impl Fn(&Got) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let got: Arc<Mutex<Vec<Got>>> = Arc::default();
        let connections = Arc::new(AtomicUsize::new(0));
        let (answer, log, count) = (Arc::new(answer), Arc::clone(&got), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                let service = service_fn(move |request: hyper::Request<Incoming>| {
                    let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                    async move {
                        let (head, body) = request.into_parts();
                        let got = Got {
                            method: head.method.to_string(),
                            path: head.uri.to_string(),
                            headers: head.headers,
                            body: body.collect().await.unwrap().to_bytes(),
                        };
                        let response = answer(&got);
                        log.lock().unwrap().push(got);
                        Ok::<_, Infallible>(response)
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self { addr, got, connections }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    fn last(&self) -> Got {
        self.got.lock().unwrap().pop().expect("a request")
    }
}

/// A server that does what `serve` does with each connection.
async fn raw<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    addr
}

/// Reads up to the end of a request's head.
async fn read_head(stream: &mut TcpStream) {
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => seen.push(byte),
            Err(_) => return,
        }
    }
}

fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    let mut builder = hyper::Response::builder().status(status);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(Full::new(body.into())).unwrap()
}

#[derive(Default)]
struct TestSecrets(HashMap<&'static str, &'static str>);

impl Secrets for TestSecrets {
    fn secret(&self, name: &str) -> Result<SecretValue, SecretError> {
        self.0
            .get(name)
            .map(|v| SecretValue::new(*v))
            .ok_or(SecretError::Unknown { name: name.to_owned() })
    }
}

/// 2026-12-01T09:00:00Z.
const WALL_US: i64 = 1_796_115_600_000_000;

fn runner_with(limits: HttpLimits) -> HttpRunner {
    let secrets = TestSecrets(HashMap::from([("api-key", "hush-hush"), ("broken", "a\nb")]));
    HttpRunner::new(limits, Arc::new(secrets), Arc::new(ManualClock::new(WALL_US))).unwrap()
}

fn runner() -> HttpRunner {
    runner_with(HttpLimits { allow_private: true, ..HttpLimits::default() })
}

fn target(method: &str, url: impl Into<String>) -> HttpTarget {
    HttpTarget { method: method.into(), url: url.into(), headers: Vec::new() }
}

fn with_headers(mut target: HttpTarget, headers: &[(&str, &str)]) -> HttpTarget {
    target.headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    target
}

const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

fn context() -> AttemptContext {
    AttemptContext {
        task_id: ID.into(),
        attempt: 2,
        fence: u64::MAX,
        kind: "close-order".into(),
        queue: "default".into(),
        namespace: "default".into(),
        key: None,
        due_at: None,
        schedule: None,
        logical_time: None,
        timeout: Duration::from_secs(30),
        payload: None,
        cancel: CancellationToken::new(),
    }
}

fn with_payload(payload: &str) -> AttemptContext {
    AttemptContext { payload: Some(payload.into()), ..context() }
}

fn within(timeout: Duration) -> AttemptContext {
    AttemptContext { timeout, ..context() }
}

#[track_caller]
fn assert_failed(end: &AttemptEnd, cause: &str) {
    assert_eq!(end.outcome, AttemptOutcome::Failed, "{end:?}");
    let error = end.error.as_deref().unwrap();
    assert!(error.contains(cause), "{error:?} has no {cause:?}");
    assert!(!error.contains('\n'), "{error:?}");
}

#[tokio::test]
async fn a_request_says_whose_it_is() {
    let server = Server::start(|_| answer(200, &[], "done")).await;
    let ctx = AttemptContext {
        key: Some("order-42".into()),
        due_at: Some("2026-12-01T09:00:00Z".into()),
        schedule: Some("daily".into()),
        logical_time: Some("2026-12-01T08:00:00Z".into()),
        ..with_payload(r#"{"n":1}"#)
    };
    let end = runner().run(target("POST", server.url("/a?b=c")), ctx).await;
    assert_eq!(end.outcome, AttemptOutcome::Succeeded);
    assert_eq!(end.http_status, Some(200));
    assert_eq!(end.output.head, b"done");
    assert_eq!(end.output.total_bytes, 4);
    let got = server.last();
    assert_eq!((got.method.as_str(), got.path.as_str()), ("POST", "/a?b=c"));
    assert_eq!(&got.body[..], br#"{"n":1}"#);
    for (name, value) in [
        ("content-type", "application/json"),
        ("content-length", "7"),
        ("idempotency-key", ID),
        ("tourbillon-task", ID),
        ("tourbillon-attempt", "2"),
        ("tourbillon-fence", "18446744073709551615"),
        ("tourbillon-kind", "close-order"),
        ("tourbillon-queue", "default"),
        ("tourbillon-namespace", "default"),
        ("tourbillon-key", "order-42"),
        ("tourbillon-due-at", "2026-12-01T09:00:00Z"),
        ("tourbillon-schedule", "daily"),
        ("tourbillon-logical-time", "2026-12-01T08:00:00Z"),
        ("user-agent", concat!("tourbillon/", env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(got.header(name), Some(value), "{name}");
    }
}

#[tokio::test]
async fn own_headers_win_except_reserved_ones() {
    let server = Server::start(|_| answer(200, &[], "")).await;
    let target = with_headers(
        target("POST", server.url("/")),
        &[
            ("Content-Type", "application/cloudevents+json"),
            ("User-Agent", "mine"),
            ("X-Twice", "1"),
            ("X-Twice", "2"),
            ("X-Name", "né"),
            ("Idempotency-KEY", "forged"),
            ("Tourbillon-Fence", "0"),
            ("TOURBILLON-key", "forged"),
            ("Content-Length", "1"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "close"),
        ],
    );
    let end = runner().run(target, with_payload("[1,2]")).await;
    assert_eq!(end.outcome, AttemptOutcome::Succeeded);
    let got = server.last();
    assert_eq!(&got.body[..], b"[1,2]");
    assert_eq!(got.header("content-type"), Some("application/cloudevents+json"));
    assert_eq!(got.header("user-agent"), Some("mine"));
    assert_eq!(got.headers.get_all("x-twice").iter().count(), 2);
    assert_eq!(got.headers["x-name"].as_bytes(), "né".as_bytes());
    assert_eq!(got.header("idempotency-key"), Some(ID));
    assert_eq!(got.header("tourbillon-fence"), Some("18446744073709551615"));
    assert_eq!(got.header("content-length"), Some("5"));
    for absent in ["tourbillon-key", "transfer-encoding", "connection"] {
        assert_eq!(got.header(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn no_payload_is_no_body() {
    let server = Server::start(|_| answer(204, &[], "")).await;
    for method in ["GET", "HEAD", "DELETE", "POST", "PUT", "PATCH", "PURGE"] {
        let end = runner().run(target(method, server.url("/")), context()).await;
        assert_eq!(end.outcome, AttemptOutcome::Succeeded, "{method}");
        let got = server.last();
        assert_eq!(got.method, method);
        assert!(got.body.is_empty());
        assert_eq!(got.header("content-type"), None, "{method}");
        assert_eq!(got.header("transfer-encoding"), None, "{method}");
    }
    runner().run(target("DELETE", server.url("/")), with_payload("{}")).await;
    assert_eq!(&server.last().body[..], b"{}");
}

#[tokio::test]
async fn statuses() {
    let server =
        Server::start(|got| answer(got.path[1..].parse().unwrap(), &[("retry-after", "7")], "x"))
            .await;
    let runner = runner();
    for (status, outcome, reject, retry) in [
        (200, AttemptOutcome::Succeeded, false, None),
        (202, AttemptOutcome::Succeeded, false, None),
        (299, AttemptOutcome::Succeeded, false, None),
        (300, AttemptOutcome::Failed, false, Some(7)),
        (302, AttemptOutcome::Failed, false, Some(7)),
        (304, AttemptOutcome::Failed, false, Some(7)),
        (400, AttemptOutcome::Failed, false, Some(7)),
        (404, AttemptOutcome::Failed, false, Some(7)),
        (410, AttemptOutcome::Failed, true, None),
        (422, AttemptOutcome::Failed, true, None),
        (429, AttemptOutcome::Failed, false, Some(7)),
        (500, AttemptOutcome::Failed, false, Some(7)),
        (503, AttemptOutcome::Failed, false, Some(7)),
    ] {
        let end = runner.run(target("POST", server.url(&format!("/{status}"))), context()).await;
        assert_eq!(end.outcome, outcome, "{status}");
        assert_eq!(end.reject, reject, "{status}");
        assert_eq!(end.retry_after.map(|d| d.as_secs()), retry, "{status}");
        assert_eq!(end.http_status, Some(status));
        assert_eq!(
            end.error.is_some_and(|e| e.contains(&status.to_string())),
            outcome == AttemptOutcome::Failed
        );
    }
}

#[tokio::test]
async fn retry_after_in_all_its_forms() {
    let day = 24 * 3_600;
    for (text, expected) in [
        ("0", Some(0)),
        ("120", Some(120)),
        (" 5 ", Some(5)),
        ("99999999999999999999999999", Some(7 * day)),
        ("Tue, 01 Dec 2026 09:05:00 GMT", Some(300)),
        ("Tuesday, 01-Dec-26 09:05:00 GMT", Some(300)),
        ("Tue Dec  1 09:05:00 2026", Some(300)),
        ("Tue, 01 Dec 2026 08:00:00 GMT", Some(0)),
        ("Wed, 01 Dec 2032 09:05:00 GMT", Some(7 * day)),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("", None),
    ] {
        let server =
            Server::start(move |_| answer(503, &[("retry-after", text)], Bytes::new())).await;
        let end = runner().run(target("GET", server.url("/")), context()).await;
        assert_eq!(end.retry_after.map(|d| d.as_secs()), expected, "{text:?}");
    }
}

/// Fault: a webhook that never answers, or answers its head and then nothing, held a worker for
/// ever. The whole exchange is bounded, and what was seen is recorded.
#[tokio::test]
async fn never_answering_ends_by_the_timeout() {
    let silent = raw(|mut stream| async move {
        read_head(&mut stream).await;
        std::future::pending().await
    })
    .await;
    let no_body = raw(|mut stream| async move {
        read_head(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npartial";
        stream.write_all(head).await.unwrap();
        std::future::pending().await
    })
    .await;
    let drip = raw(|mut stream| async move {
        read_head(&mut stream).await;
        let mut head = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
        loop {
            if stream.write_all(&head).await.is_err() {
                return;
            }
            head = b"x".to_vec();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let slow_loop = Server::start(|_| answer(307, &[("location", "/")], "")).await;
    for (addr, status, body) in
        [(silent, None, ""), (no_body, Some(200), "partial"), (drip, None, "")]
    {
        let end = runner()
            .run(target("GET", format!("http://{addr}/")), within(Duration::from_millis(200)))
            .await;
        assert_eq!(end.outcome, AttemptOutcome::TimedOut, "{end:?}");
        assert_eq!(end.error.as_deref(), Some("timed out after 200ms"));
        assert_eq!(end.http_status, status);
        assert_eq!(end.output.head, body.as_bytes());
    }
    let end = runner().run(target("GET", slow_loop.url("/")), within(Duration::ZERO)).await;
    assert_eq!(end.outcome, AttemptOutcome::TimedOut);
}

/// Fault: a webhook that answers 10 GB filled the memory. A kilobyte is kept, some more is read,
/// then the connection is closed; the status counts.
#[tokio::test]
async fn a_huge_body_costs_the_connection_and_no_memory() {
    const TEN_GB: u64 = 10_000_000_000;
    for announced in [true, false] {
        let (sent_tx, mut sent) = mpsc::unbounded_channel();
        let addr = raw(move |mut stream| {
            let sent = sent_tx.clone();
            async move {
                read_head(&mut stream).await;
                let head = if announced {
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {TEN_GB}\r\n\r\n")
                } else {
                    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_owned()
                };
                stream.write_all(head.as_bytes()).await.unwrap();
                let chunk = vec![b'x'; 64 * 1024];
                let mut total = 0u64;
                while total < TEN_GB && stream.write_all(&chunk).await.is_ok() {
                    total += chunk.len() as u64;
                }
                sent.send(total).unwrap();
            }
        })
        .await;
        let end = runner().run(target("GET", format!("http://{addr}/")), context()).await;
        assert_eq!(end.outcome, AttemptOutcome::Succeeded, "{end:?}");
        assert_eq!(end.output.head, vec![b'x'; 1024]);
        assert!(end.output.is_truncated());
        let total = sent.recv().await.unwrap();
        assert!(total < 100_000_000, "the server could send {total} bytes");
    }
}

/// Fault: invalid UTF-8 in an answer made recording the outcome fail.
#[tokio::test]
async fn invalid_utf8_is_kept_as_bytes() {
    let server = Server::start(|_| answer(200, &[], &b"ok \xff\xfe\x00"[..])).await;
    let end = runner().run(target("GET", server.url("/")), context()).await;
    assert_eq!(end.outcome, AttemptOutcome::Succeeded);
    assert_eq!(end.output.head, b"ok \xff\xfe\x00");
    assert_eq!(end.output.to_text_lossy(), "ok \u{fffd}\u{fffd}\0");
}

/// Fault: redirect loops. They end after a stated number of hops, as a failure.
#[tokio::test]
async fn redirect_loops_fail() {
    let server = Server::start(|_| answer(302, &[("location", "/again")], "")).await;
    let end = runner().run(target("GET", server.url("/")), context()).await;
    assert_failed(&end, "more than 5 redirects");
    assert_eq!(end.http_status, Some(302));
    assert_eq!(server.got.lock().unwrap().len(), 6);
}

#[tokio::test]
async fn redirects_keep_or_drop_the_body_by_their_status() {
    for (status, method, method_after, has_body) in [
        (301, "POST", "GET", false),
        (302, "POST", "GET", false),
        (302, "PUT", "PUT", true),
        (303, "PUT", "GET", false),
        (307, "POST", "POST", true),
        (308, "PUT", "PUT", true),
    ] {
        let server = Server::start(move |got| match got.path.as_str() {
            "/a/start" => answer(status, &[("location", "../end?x=1")], "moved"),
            "/end?x=1" => answer(200, &[], "arrived"),
            other => panic!("{other}"),
        })
        .await;
        let target = with_headers(
            target(method, server.url("/a/start")),
            &[("authorization", "Bearer t"), ("x-key", "secret:api-key")],
        );
        let end = runner().run(target, with_payload("{}")).await;
        assert_eq!(end.outcome, AttemptOutcome::Succeeded, "{status} {end:?}");
        assert_eq!(end.output.head, b"arrived");
        let got = server.last();
        assert_eq!(got.method, method_after, "{status}");
        assert_eq!(!got.body.is_empty(), has_body, "{status}");
        assert_eq!(got.header("content-type").is_some(), has_body, "{status}");
        assert_eq!(got.header("idempotency-key"), Some(ID));
        assert_eq!(got.header("authorization"), Some("Bearer t"));
        assert_eq!(got.header("x-key"), Some("hush-hush"));
        // The small body of the redirect was read, so one connection served both.
        assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn another_origin_gets_no_credentials() {
    let far = Server::start(|_| answer(200, &[], "")).await;
    let far_url = far.url("/landing");
    let near = Server::start(move |_| answer(307, &[("location", &far_url)], "")).await;
    let target = with_headers(
        target("POST", near.url("/").replace("http://", "http://user:p%40ss@")),
        &[("cookie", "c"), ("x-key", "secret:api-key"), ("x-plain", "p")],
    );
    let end = runner().run(target, with_payload("{}")).await;
    assert_eq!(end.outcome, AttemptOutcome::Succeeded);
    let got = near.last();
    assert_eq!(got.header("authorization"), Some("Basic dXNlcjpwQHNz"));
    assert_eq!(got.header("cookie"), Some("c"));
    assert_eq!(got.header("x-key"), Some("hush-hush"));
    let got = far.last();
    for absent in ["authorization", "cookie", "x-key"] {
        assert_eq!(got.header(absent), None, "{absent}");
    }
    assert_eq!(got.header("x-plain"), Some("p"));
    assert_eq!(got.header("idempotency-key"), Some(ID));
    assert_eq!(&got.body[..], b"{}");
}

#[tokio::test]
async fn redirects_to_nowhere() {
    for (location, cause) in [
        ("ftp://example.org/", "redirected to a ftp URL"),
        ("file:///etc/passwd", "redirected to a file URL"),
        ("http://[", "redirected to an invalid URL"),
    ] {
        let server =
            Server::start(move |_| answer(302, &[("location", location)], Bytes::new())).await;
        let end = runner().run(target("GET", server.url("/")), context()).await;
        assert_failed(&end, cause);
    }
}

#[tokio::test]
async fn private_addresses_are_refused_however_they_are_written() {
    let server = Server::start(|_| answer(200, &[], "")).await;
    let port = server.addr.port();
    let runner = runner_with(HttpLimits::default());
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "localhost",
        "LOCALHOST",
        "169.254.169.254",
        "10.0.0.1",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[64:ff9b::7f00:1]",
    ] {
        let end = runner.run(target("GET", format!("http://{host}:{port}/")), context()).await;
        assert_failed(&end, "private targets are not allowed");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_redirect_to_a_refused_address_is_refused() {
    // Everything here is loopback, so the rule for this test refuses but one address of it.
    let inner = Server::start_on("127.0.0.2", |_| answer(200, &[], "inner")).await;
    for location in [
        inner.url("/"),
        format!("http://[::ffff:127.0.0.2]:{}/", inner.addr.port()),
        format!("http://localhost:{}/", inner.addr.port()),
    ] {
        let shown = location.clone();
        let outer = Server::start(move |got| match got.path.as_str() {
            "/" => answer(307, &[("location", "/hop")], ""),
            _ => answer(307, &[("location", &location)], ""),
        })
        .await;
        let allowed = outer.addr.port();
        let seen = Arc::new(AtomicUsize::new(0));
        let rule: AddressRule = {
            let seen = Arc::clone(&seen);
            Arc::new(move |ip| {
                // The first two judgements are of the outer server.
                if ip == outer.addr.ip() && seen.fetch_add(1, Ordering::SeqCst) < 2 {
                    AddressClass::Public
                } else {
                    super::super::classify(ip)
                }
            })
        };
        let runner = HttpRunner::with_rule(
            HttpLimits::default(),
            Some(rule),
            Arc::new(TestSecrets::default()),
            Arc::new(ManualClock::new(WALL_US)),
        )
        .unwrap();
        let end =
            runner.run(target("GET", format!("http://127.0.0.1:{allowed}/")), context()).await;
        assert_failed(&end, "loopback address");
        assert_eq!(end.http_status, Some(307), "{shown}");
        assert_eq!(inner.connections.load(Ordering::SeqCst), 0, "{shown}");
    }
}

#[tokio::test]
async fn a_public_name_is_resolved_and_called() {
    let server = Server::start(|_| answer(200, &[], "")).await;
    let rule: AddressRule =
        Arc::new(|ip| if ip.is_ipv4() { AddressClass::Public } else { AddressClass::Loopback });
    let runner = HttpRunner::with_rule(
        HttpLimits::default(),
        Some(rule),
        Arc::new(TestSecrets::default()),
        Arc::new(ManualClock::new(WALL_US)),
    )
    .unwrap();
    let url = format!("http://localhost:{}/", server.addr.port());
    let end = runner.run(target("GET", url), context()).await;
    assert_eq!(end.outcome, AttemptOutcome::Succeeded, "{end:?}");
}

#[tokio::test]
async fn what_cannot_be_reached_says_why() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let end = runner().run(target("GET", format!("http://{closed}/?token=t0p")), context()).await;
    assert_failed(&end, "cannot connect: Connection refused");
    assert!(!end.error.unwrap().contains("t0p"));
    let end = runner().run(target("GET", "http://no-such-host.invalid/"), context()).await;
    assert_failed(&end, "no-such-host.invalid");
    let hangs_up = raw(|mut stream| async move { read_head(&mut stream).await }).await;
    let end = runner().run(target("GET", format!("http://{hangs_up}/")), context()).await;
    assert_failed(&end, "the request failed: connection closed");
    let garbage = raw(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"\x15\x03\x01 hello\r\n\r\n").await;
    })
    .await;
    let end = runner().run(target("GET", format!("http://{garbage}/")), context()).await;
    assert_failed(&end, "the request failed");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_a_failure() {
    let addr = raw(|mut stream| async move {
        read_head(&mut stream).await;
        let part = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
        let _ = stream.write_all(part).await;
    })
    .await;
    let end = runner().run(target("GET", format!("http://{addr}/")), context()).await;
    assert_failed(&end, "broke off after status 200 and 4 bytes");
    assert_eq!((end.http_status, end.output.head), (Some(200), b"half".to_vec()));
}

#[tokio::test]
async fn tls_trusts_given_roots_and_no_others() {
    let cert = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(cert.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let addr = raw(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let service = service_fn(|_: hyper::Request<Incoming>| async {
                Ok::<_, Infallible>(answer(200, &[], "sealed"))
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        }
    })
    .await;
    let url = format!("https://localhost:{}/", addr.port());
    let end = runner().run(target("GET", url.clone()), context()).await;
    assert_failed(&end, "invalid peer certificate");
    let trusting = runner_with(HttpLimits {
        allow_private: true,
        extra_roots_pem: cert.cert.pem().into_bytes(),
        ..HttpLimits::default()
    });
    let end = trusting.run(target("GET", url), context()).await;
    assert_eq!(end.output.head, b"sealed", "{end:?}");
    let plain = format!("https://{}/", Server::start(|_| answer(200, &[], "")).await.addr);
    let end = trusting.run(target("GET", plain), context()).await;
    assert_failed(&end, "cannot connect");
}

#[tokio::test]
async fn roots_that_are_none() {
    for pem in
        ["not a certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
    {
        let error = HttpRunner::new(
            HttpLimits { extra_roots_pem: pem.into(), ..HttpLimits::default() },
            Arc::new(TestSecrets::default()),
            Arc::new(ManualClock::new(0)),
        )
        .unwrap_err();
        assert!(error.is_bad_roots(), "{error}");
        assert!(error.to_string().starts_with("extra_roots_pem: "), "{error}");
    }
}

#[tokio::test]
async fn secrets_are_sent_and_never_shown() {
    let server = Server::start(|_| answer(500, &[], "")).await;
    let runner = runner();
    let call = |value: &'static str| {
        let target = with_headers(target("GET", server.url("/")), &[("X-Key", value)]);
        runner.run(target, context())
    };
    let end = call("secret:api-key").await;
    assert_eq!(server.last().header("x-key"), Some("hush-hush"));
    assert!(!format!("{end:?}").contains("hush-hush"));

    let end = call("secret:other").await;
    assert_failed(&end, "header x-key: no secret other: set TOURBILLON_SECRET_other");
    assert!(!end.reject, "it can be set before the next attempt");

    let end = call("secret:broken").await;
    assert_failed(&end, "header x-key: its value has control characters");
    assert!(!end.reject && !end.error.unwrap().contains("a\nb"));
}

#[tokio::test]
async fn a_target_that_can_never_work_is_rejected() {
    let url = "http://example.org/";
    for (target, cause) in [
        (target("GE T", url), "method: \"GE T\""),
        (target("", url), "method: \"\""),
        (target("CONNECT", url), "method: \"CONNECT\""),
        (target("GET", "example.org"), "url: relative URL without a base"),
        (target("GET", "ftp://example.org/"), "url: ftp is not a scheme"),
        (target("GET", "http://"), "url: empty host"),
        (
            with_headers(target("GET", url), &[("a b", "c")]),
            "headers: \"a b\" is not a header name",
        ),
        (
            with_headers(target("GET", url), &[("a", "b\r\nc: d")]),
            "header a: its value has control characters",
        ),
    ] {
        let end = runner().run(target, context()).await;
        assert_failed(&end, cause);
        assert!(end.reject, "{cause}");
    }
}

#[tokio::test]
async fn cancelling_abandons_the_request_at_once() {
    let (events_tx, mut events) = mpsc::unbounded_channel();
    let addr = raw(move |mut stream| {
        let events = events_tx.clone();
        async move {
            read_head(&mut stream).await;
            events.send("asked").unwrap();
            // Ends when the other side closes.
            while matches!(stream.read(&mut [0; 64]).await, Ok(n) if n > 0) {}
            events.send("closed").unwrap();
        }
    })
    .await;
    let ctx = context();
    let cancel = ctx.cancel.clone();
    let runner = runner();
    let attempt = tokio::spawn({
        let runner = runner.clone();
        async move { runner.run(target("GET", format!("http://{addr}/")), ctx).await }
    });
    assert_eq!(events.recv().await, Some("asked"));
    cancel.cancel();
    let end = attempt.await.unwrap();
    assert_eq!(end.outcome, AttemptOutcome::Cancelled);
    assert_eq!(events.recv().await, Some("closed"));

    // Cancelled before it began: nothing is sent.
    let ctx = context();
    ctx.cancel.cancel();
    let end = runner.run(target("GET", format!("http://{addr}/")), ctx).await;
    assert_eq!(end.outcome, AttemptOutcome::Cancelled);

    // Dropping does the same.
    let attempt = tokio::spawn({
        let runner = runner.clone();
        async move { runner.run(target("GET", format!("http://{addr}/")), context()).await }
    });
    assert_eq!(events.recv().await, Some("asked"));
    attempt.abort();
    assert_eq!(events.recv().await, Some("closed"));
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = Server::start(|_| answer(200, &[], vec![b'x'; 60_000])).await;
    let runner = runner();
    for _ in 0..50 {
        let end = runner.run(target("POST", server.url("/")), with_payload("{}")).await;
        assert_eq!(end.outcome, AttemptOutcome::Succeeded);
        assert_eq!(end.output.total_bytes, 60_000);
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}
