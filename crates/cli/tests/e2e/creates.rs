//! `kill -9` while tasks are being created.

// sleeps: the moment of a kill is drawn at random, it is not a wait for something.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::server::try_answer;
use crate::support::{Folder, Server, is_full};

/// Tasks of one batch.
const BATCH: usize = 20;
/// Clients at once.
const CLIENTS: usize = 4;

/// One request and what is known of it.
struct Asked {
    body: Value,
    ids: Vec<String>,
    /// Whether the server said that it was created.
    acknowledged: bool,
}

impl Asked {
    /// Every third a batch, the others one task.
    fn new(n: usize) -> Asked {
        let size = if n % 3 == 2 { BATCH } else { 1 };
        let ids: Vec<String> = (0..size).map(|_| Uuid::now_v7().to_string()).collect();
        let task =
            |id: &String| json!({"id": id, "target": {"worker": {}}, "delay": "1h", "payload": n});
        let body = if size == 1 { task(&ids[0]) } else { ids.iter().map(task).collect() };
        Asked { body, ids, acknowledged: false }
    }

    fn path(&self) -> &'static str {
        if self.body.is_array() { "/v1/tasks/batch" } else { "/v1/tasks" }
    }
}

/// Schedulers that answer before the disk has it lose tasks at a power cut or `kill -9`, and those
/// that insert a batch row by row leave half of it.
///
/// Clients create tasks and batches without pause, and the server is killed at a random moment, again
/// and again. What was acknowledged is there after the restart; what was not is there whole or not
/// at all; asking again with the same ids is safe either way.
#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_tasks_survive_kills_and_batches_are_whole() {
    let rounds = if is_full() { 30 } else { 6 };
    let folder = Folder::new();
    let mut all: HashSet<String> = HashSet::new();
    for round in 0..rounds {
        let server = Arc::new(Server::start(&folder).await);
        let sent = Arc::new(AtomicUsize::new(0));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (server, sent) = (server.clone(), sent.clone());
                tokio::spawn(async move { create_until_it_dies(&server, &sent).await })
            })
            .collect();
        // A random moment: some requests in, and a random fraction of a request's time.
        let random = Uuid::new_v4().as_u128();
        let (requests, micros) = (1 + (random % 60) as usize, (random >> 64) as u64 % 10_000);
        crate::support::eventually("requests are answered", 30, async || {
            (sent.load(Ordering::Relaxed) >= requests).then_some(())
        })
        .await;
        tokio::time::sleep(Duration::from_micros(micros)).await;
        server.kill_now();
        let mut asked = Vec::new();
        for client in clients {
            asked.extend(client.await.expect("a client does not panic"));
        }
        drop(server);

        let server = Server::start(&folder).await;
        let found: HashMap<String, Value> = server
            .list("state=scheduled")
            .await
            .into_iter()
            .map(|task| (task["id"].as_str().expect("an id").to_owned(), task))
            .collect();
        for id in &all {
            assert!(found.contains_key(id), "round {round}: {id} of an earlier round is lost");
        }
        for ask in &asked {
            let there = ask.ids.iter().filter(|id| found.contains_key(*id)).count();
            if ask.acknowledged {
                assert_eq!(there, ask.ids.len(), "round {round}: acknowledged and lost");
            } else {
                assert!(there == 0 || there == ask.ids.len(), "round {round}: half a batch");
            }
            let again = server.post(ask.path(), &ask.body).await;
            let expected: &[u16] = if there == 0 { &[201] } else { &[200, 201] };
            assert!(expected.contains(&again.status), "round {round}: {again:?}");
            let answer = again.json();
            match answer["ids"].as_array() {
                Some(ids) => assert_eq!(*ids, ask.ids, "the same ids again"),
                None => assert_eq!(answer["id"], ask.ids[0]),
            }
            all.extend(ask.ids.iter().cloned());
        }
        let listed = server.list("state=scheduled").await;
        assert_eq!(listed.len(), all.len(), "round {round}: each task is there once");
        server.kill().await;
    }
}

/// Creates tasks one request after the other until there is no answer.
async fn create_until_it_dies(server: &Server, sent: &AtomicUsize) -> Vec<Asked> {
    let mut asked = Vec::new();
    loop {
        let mut ask = Asked::new(sent.load(Ordering::Relaxed) + asked.len());
        let request = server.request(Method::POST, ask.path()).json(&ask.body);
        let answer = try_answer(request).await;
        ask.acknowledged = answer.as_ref().is_ok_and(|a| a.status == 201);
        asked.push(ask);
        match answer {
            Ok(answer) => assert_eq!(answer.status, 201, "{answer:?}"),
            Err(_) => return asked,
        }
        sent.fetch_add(1, Ordering::Relaxed);
    }
}
