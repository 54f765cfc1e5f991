//! The client against a small server: what it sends, what it makes of answers, when it repeats.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use tourbillon_client::wire::{
    EventsQuery, HoldStatus, ManyRequest, NewTask, OnConflict, Target, TaskListQuery, TaskState,
};
use tourbillon_client::{Client, ClientConfig, ClientError};
use uuid::Uuid;

/// What one answer is; the last one is given again and again.
#[derive(Clone)]
struct Answer {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: String,
}

fn answer(status: u16, body: impl Into<String>) -> Answer {
    Answer { status, headers: Vec::new(), body: body.into() }
}

#[derive(Clone)]
struct Server {
    url: String,
    answers: Arc<Mutex<Vec<Answer>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

struct Seen {
    line: String,
    authorization: Option<String>,
    body: String,
}

async fn serve(answers: impl IntoIterator<Item = Answer>) -> Server {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server {
        url: format!("http://{}", listener.local_addr().unwrap()),
        answers: Arc::new(Mutex::new(answers.into_iter().collect())),
        seen: Arc::default(),
    };
    let app = Router::new().fallback(respond).with_state(server.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    server
}

async fn respond(State(server): State<Server>, request: Request) -> Response<Body> {
    let line = format!("{} {}", request.method(), request.uri());
    let authorization =
        request.headers().get("authorization").map(|v| v.to_str().unwrap().to_owned());
    let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    server.seen.lock().unwrap().push(Seen { line, authorization, body });
    let mut answers = server.answers.lock().unwrap();
    let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
    let mut response = Response::builder().status(StatusCode::from_u16(answer.status).unwrap());
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(answer.body)).unwrap()
}

impl Server {
    fn client(&self) -> Client {
        let config = ClientConfig::new(&self.url).with_token("tok").with_namespace("a b");
        Client::new(config).unwrap()
    }

    fn lines(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|s| s.line.clone()).collect()
    }
}

fn busy() -> Answer {
    let body =
        r#"{"type":"urn:tourbillon:problem:busy","title":"busy","status":503,"code":"busy"}"#;
    Answer { headers: vec![("retry-after", "0")], ..answer(503, body) }
}

fn task(id: &str) -> String {
    serde_json::json!({
        "id": id, "namespace": "default", "queue": "default", "kind": "x", "state": "scheduled",
        "target": {"worker": {}}, "due_at": "2026-01-01T00:00:00Z",
        "created_at": "2026-01-01T00:00:00Z", "version": 1
    })
    .to_string()
}

const ID: &str = "0193e1f0-0000-7000-8000-000000000001";

#[tokio::test]
async fn calls_carry_token_namespace_and_encoded_names() {
    let server = serve([answer(200, r#"{"items":[]}"#), answer(204, "")]).await;
    let client = server.client();
    let query = TaskListQuery {
        state: Some(TaskState::Ready),
        key: Some("a&b".into()),
        due_after: Some("2026-01-01T00:00:00Z".parse().unwrap()),
        limit: Some(5),
        ..TaskListQuery::default()
    };
    assert_eq!(client.tasks(&query).await.unwrap().items, []);
    client.remove_schedule("täglich 1%").await.unwrap();
    assert_eq!(
        server.lines(),
        [
            "GET /v1/tasks?namespace=a+b&due_after=2026-01-01T00%3A00%3A00Z&key=a%26b&limit=5&state=ready",
            "DELETE /v1/schedules/t%C3%A4glich%201%25?namespace=a+b",
        ]
    );
    assert!(
        server
            .seen
            .lock()
            .unwrap()
            .iter()
            .all(|s| s.authorization.as_deref() == Some("Bearer tok"))
    );
}

#[tokio::test]
async fn creating_gives_the_same_id_again_when_the_server_was_busy() {
    let server = serve([busy(), busy(), answer(201, task(ID))]).await;
    let created = server.client().create(NewTask::new(Target::worker())).await.unwrap();
    assert_eq!(created.id.to_string(), ID);
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    let id = |s: &Seen| serde_json::from_str::<NewTask>(&s.body).unwrap().id.unwrap();
    assert_eq!(id(&seen[0]), id(&seen[2]));
    assert_eq!(id(&seen[0]).get_version_num(), 7);
}

#[tokio::test]
async fn patience_has_an_end() {
    let server = serve([busy()]).await;
    let error = server.client().stats(&Default::default()).await.unwrap_err();
    assert!(error.is_retryable() && error.status() == Some(503), "{error}");
    assert_eq!(server.lines().len(), 4, "one try and three more");

    let long = Answer { headers: vec![("retry-after", "3600")], ..busy() };
    let server = serve([long]).await;
    let error = server.client().stats(&Default::default()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    assert_eq!(server.lines().len(), 1, "nobody waits for an hour");
}

#[tokio::test]
async fn a_call_that_must_not_come_twice_does_not() {
    let server = serve([busy()]).await;
    let client = server.client();
    let id: Uuid = ID.parse().unwrap();
    let mut replace = NewTask::new(Target::worker());
    replace.on_conflict = OnConflict::Replace;
    client.retry(id).await.unwrap_err();
    client.trigger_schedule("s").await.unwrap_err();
    client.claim("q", &Default::default()).await.unwrap_err();
    client.retry_many(&ManyRequest::default()).await.unwrap_err();
    client.create_batch(&mut [replace]).await.unwrap_err();
    assert_eq!(server.lines().len(), 5);
}

#[tokio::test]
async fn problems_come_through_whole() {
    let problem = r#"{"type":"urn:tourbillon:problem:key_taken","title":"t","status":409,"code":"key_taken",
        "detail":"key `k` is held","field":"key","expected":"a free key","index":4}"#;
    let server = serve([answer(409, problem)]).await;
    let error = server.client().create_batch(&mut []).await.unwrap_err();
    assert!(error.is_conflict() && !error.is_retryable() && !error.is_not_found());
    assert_eq!(error.to_string(), "key_taken: task 4: key: key `k` is held; expected a free key");
    assert_eq!(error.problem().unwrap().index, Some(4));
}

#[tokio::test]
async fn what_is_no_problem_document_is_still_an_error() {
    for (body, shown) in [
        ("<html>Bad gateway</html>", "http_502: Bad Gateway"),
        ("upstream is down\nmore", "http_502: upstream is down"),
        ("", "http_502: Bad Gateway"),
    ] {
        let server = serve([answer(502, body)]).await;
        let error = server.client().task(ID.parse().unwrap()).await.unwrap_err();
        assert_eq!(error.to_string(), shown);
        assert!(error.is_retryable());
    }
    let server = serve([answer(200, r#"{"id":5}"#)]).await;
    let error = server.client().task(ID.parse().unwrap()).await.unwrap_err();
    assert!(error.to_string().starts_with("the reply of /v1/tasks/"), "{error}");
    assert!(error.problem().is_none() && !error.is_retryable());
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere =
        Answer { headers: vec![("location", "http://127.0.0.1:1/")], ..answer(302, "") };
    let server = serve([elsewhere]).await;
    let error = server.client().ready().await.unwrap_err();
    assert_eq!(error.status(), Some(302));
}

#[tokio::test]
async fn a_reply_has_a_bound() {
    let server = serve([answer(200, task(ID))]).await;
    let client = Client::new(ClientConfig::new(&server.url).with_reply_bytes_max(50)).unwrap();
    let error = client.task(ID.parse().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("more than 50 bytes"), "{error}");
}

#[tokio::test]
async fn nobody_there_is_said_plainly() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error: ClientError =
        Client::new(ClientConfig::new(&url)).unwrap().ready().await.unwrap_err();
    assert!(error.is_transport() && error.is_retryable());
    assert!(error.to_string().starts_with(&format!("cannot connect to {url}/: ")), "{error}");
    for wrong in ["", "localhost:7070", "ftp://a", "http://"] {
        let error = Client::new(ClientConfig::new(wrong)).unwrap_err();
        assert!(error.to_string().contains("expected such as"), "{wrong}: {error}");
    }
    assert!(Client::new(ClientConfig::new(&url).with_token("a\nb")).is_err());
    assert!(!format!("{:?}", ClientConfig::new(&url).with_token("tok")).contains("tok\""));
}

#[tokio::test]
async fn output_tells_where_it_starts() {
    let cut = Answer {
        headers: vec![("tourbillon-output-from", "70000"), ("tourbillon-output-bytes", "70005")],
        ..answer(200, "tail\n")
    };
    let server = serve([cut, answer(200, "plain")]).await;
    let client = server.client();
    let output = client.output(ID.parse().unwrap(), 2, 10).await.unwrap();
    assert_eq!((output.from, output.total, &output.bytes[..]), (70000, 70005, &b"tail\n"[..]));
    let output = client.output(ID.parse().unwrap(), 2, 10).await.unwrap();
    assert_eq!((output.from, output.total), (10, 15));
    assert_eq!(
        server.lines()[0],
        format!("GET /v1/tasks/{ID}/attempts/2/output?namespace=a+b&from=10")
    );
}

#[tokio::test]
async fn events_and_holds_are_read() {
    let events = "event: node.changed\ndata: {\"seq\":1,\"at\":\"2026-01-01T00:00:00Z\",\"kind\":\"node.changed\",\"namespace\":\"default\"}\n\n";
    let server =
        serve([answer(200, events), answer(200, r#"[{"token":"t","status":"gone"}]"#)]).await;
    let client = server.client();
    let mut stream = client.events(&EventsQuery::default()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().seq, 1);
    assert_eq!(stream.next().await.unwrap(), None);
    assert_eq!(client.heartbeat(&[]).await.unwrap()[0].status, HoldStatus::Gone);
}

#[tokio::test]
async fn a_base_path_is_kept() {
    let server = serve([answer(200, "")]).await;
    for base in ["/t/", "/t"] {
        Client::new(ClientConfig::new(server.url.clone() + base)).unwrap().ready().await.unwrap();
    }
    assert_eq!(server.lines(), ["GET /t/readyz", "GET /t/readyz"]);
}
