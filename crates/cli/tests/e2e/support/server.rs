//! The real server as a process, and talking to it over HTTP.

// sleeps: the pause between two looks at a real process, within a deadline.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::{Folder, binary, eventually};

/// How long a server may take to answer that it takes work.
const READY_SECONDS: u64 = 30;
/// What a started server prints first.
const LISTENING: &str = "listening on ";

/// A running server. Killed when dropped, with its whole process group.
pub(crate) struct Server {
    child: Child,
    group: Pid,
    pub(crate) url: String,
    data: PathBuf,
    log: PathBuf,
    client: Client,
}

/// How a server that ended by itself did.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) status: ExitStatus,
    /// What it printed on standard error.
    pub(crate) err: String,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|e| panic!("not JSON ({e}): {} {}", self.status, self.text))
    }

    /// The answer, which must have this status.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Reply {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }
}

/// The usual command line of a server on this data folder.
pub(crate) fn serve(data: &Path) -> Command {
    let mut command = Command::new(binary());
    command.args(["serve", "--listen", "127.0.0.1:0", "--allow-private-targets", "--data"]);
    command.arg(data);
    command
}

impl Server {
    /// Starts a server on the folder `data` in `folder`, new or not, and waits until it takes work.
    pub(crate) async fn start(folder: &Folder) -> Server {
        Server::start_by(folder, serve(&folder.path().join("data"))).await
    }

    /// The same with a command line of the test's own.
    pub(crate) async fn start_by(folder: &Folder, command: Command) -> Server {
        let mut server = match Server::spawn(folder, command).await {
            Ok(server) => server,
            Err(exit) => panic!("the server ended: {exit:?}"),
        };
        server.ready().await;
        server
    }

    /// Starts a server and waits until it listens, or has ended.
    pub(crate) async fn spawn(folder: &Folder, mut command: Command) -> Result<Server, Exit> {
        let log = tempfile::Builder::new().prefix("stderr-").tempfile_in(folder.path());
        let (file, log) = log.and_then(|f| f.keep().map_err(|e| e.error)).expect("a file");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let listening = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some((_, url)) = line.split_once(LISTENING) {
                    return Some(url.trim().to_owned());
                }
            }
            None
        };
        let listening = tokio::time::timeout(Duration::from_secs(READY_SECONDS), listening).await;
        let Some(url) =
            listening.unwrap_or_else(|_| panic!("no word of listening: {}", read(&log)))
        else {
            let status = child.wait().await.expect("its end can be waited for");
            return Err(Exit { status, err: read(&log) });
        };
        // Whatever else it prints is taken off the pipe, so that it never blocks.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        // The workspace builds reqwest without a provider of its own; a second install is refused.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(30)).build();
        Ok(Server {
            child,
            group,
            url,
            data: folder.path().join("data"),
            log,
            client: client.expect("a client"),
        })
    }

    /// Waits until it takes work.
    pub(crate) async fn ready(&mut self) {
        let url = format!("{}/readyz", self.url);
        let start = Instant::now();
        loop {
            let answer = self.client.get(&url).send().await;
            if answer.is_ok_and(|a| a.status().is_success()) {
                return;
            }
            let ended = self.child.try_wait().expect("its state can be read");
            assert!(ended.is_none(), "it ended before it was ready: {ended:?}");
            assert!(start.elapsed() < Duration::from_secs(READY_SECONDS), "it is never ready");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The process's number.
    pub(crate) fn pid(&self) -> u32 {
        self.group.as_raw_nonzero().get().cast_unsigned()
    }

    /// Ends it at once, as `kill -9` does.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("it can be killed");
    }

    /// The same while others still hold it; dropping the last holder waits for its end.
    pub(crate) fn kill_now(&self) {
        kill_process(self.group, Signal::KILL).expect("it runs");
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        kill_process(self.group, Signal::TERM).expect("it runs");
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn exit(&mut self, seconds: u64) -> Exit {
        let ended = tokio::time::timeout(Duration::from_secs(seconds), self.child.wait()).await;
        let status = ended.unwrap_or_else(|_| panic!("it did not end within {seconds} s"));
        Exit { status: status.expect("its end can be waited for"), err: read(&self.log) }
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("its state can be read").is_some()
    }

    /// The token of its data folder.
    pub(crate) fn token(&self) -> String {
        let token = std::fs::read_to_string(self.data.join("token")).expect("a token file");
        token.trim().to_owned()
    }

    /// A request without the token.
    pub(crate) fn stranger(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// A request with the token.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.stranger(method, path).bearer_auth(self.token())
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        answer(self.request(Method::GET, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        answer(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        answer(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        answer(self.request(Method::PUT, path).json(body)).await
    }

    /// Creates a task and gives its id.
    pub(crate) async fn create(&self, task: &Value) -> String {
        let made = self.post("/v1/tasks", task).await.is(201).json();
        made["id"].as_str().expect("an id").to_owned()
    }

    /// The task as shown.
    pub(crate) async fn task(&self, id: &str) -> Value {
        self.get(&format!("/v1/tasks/{id}")).await.is(200).json()
    }

    /// Waits until the task is as wanted, and gives it.
    pub(crate) async fn until_task(
        &self,
        id: &str,
        what: &str,
        seconds: u64,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        eventually(what, seconds, async || Some(self.task(id).await).filter(|t| wanted(t))).await
    }

    /// Waits until the task is in this state, and gives it.
    pub(crate) async fn until_state(&self, id: &str, state: &str, seconds: u64) -> Value {
        self.until_task(id, &format!("{id} {state}"), seconds, |t| t["state"] == state).await
    }

    /// All tasks that a list answers, through all of its pages.
    pub(crate) async fn list(&self, query: &str) -> Vec<Value> {
        let mut all = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/v1/tasks?limit=1000&{query}{cursor}");
            let page = self.get(&path).await.is(200).json();
            all.extend(page["items"].as_array().expect("items").iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return all,
            }
        }
    }

    /// A number of `/metrics`.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").await.is(200).text;
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("standard error of the server:\n{}", read(&self.log));
        }
        // Reaped below, so until then the number is its own.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process_group(self.group, Signal::KILL);
            let _ = self.child.start_kill();
        }
        // Its folder is removed next; it must not write there any more.
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Sends a request and reads the answer.
pub(crate) async fn answer(request: RequestBuilder) -> Reply {
    try_answer(request).await.unwrap_or_else(|e| panic!("no answer: {e:?}"))
}

/// The same; the connection may break off.
pub(crate) async fn try_answer(request: RequestBuilder) -> Result<Reply, reqwest::Error> {
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok(Reply { status, headers, text: response.text().await? })
}

fn read(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}
