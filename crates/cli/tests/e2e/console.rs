//! The web console in a real browser.

use serde_json::json;
use tokio::process::Command;

use crate::support::{Folder, Receiver, Server, program, run};

/// A browser without a window, in a profile of its own.
struct Browser {
    folder: Folder,
}

impl Browser {
    async fn run(&self, args: &[&str]) -> String {
        let mut command = Command::new(program("TOURBILLON_CHROMIUM", "/usr/bin/chromium"));
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--lang=en",
        ]);
        command.arg(format!("--user-data-dir={}", self.folder.file("profile"))).args(args);
        command.env("HOME", self.folder.path()).env("LANGUAGE", "en");
        run(command, 60).await.ended(0).out
    }

    /// The document as it is after its scripts have run.
    async fn dom(&self, url: &str) -> String {
        self.run(&["--dump-dom", url]).await
    }

    /// Width and height of a picture of the page.
    async fn picture(&self, url: &str, size: &str) -> (u32, u32) {
        let file = self.folder.file("page.png");
        self.run(&[&format!("--screenshot={file}"), &format!("--window-size={size}"), url]).await;
        let png = std::fs::read(&file).expect("a picture");
        assert!(png.len() > 5_000, "a picture of something, not {} bytes", png.len());
        let number =
            |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
        (number(16), number(20))
    }
}

/// Faults that only a browser shows: a content policy that keeps out the page's own script, an asset
/// that is not there, text that is taken for markup. The console is looked at as a person does.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_shows_what_there_is() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start(&folder).await;
    let script = "echo 'printed <b>bold</b>'; exit 7";
    let id = server
        .create(
            &json!({"kind": "close-<i>order", "target": {"command": {"argv": ["sh", "-c", script]}},
            "payload": {"order": 42}, "retry": {"max_attempts": 1}}),
        )
        .await;
    server.create(&json!({"kind": "later", "target": {"worker": {}}, "delay": "1h"})).await;
    let schedule = json!({"cron": "0 9 * * mon-fri", "tz": "Asia/Shanghai",
        "task": {"target": receiver.target("/report")}});
    server.put("/v1/schedules/daily-report", &schedule).await.is(201);
    server.until_state(&id, "failed", 30).await;

    let browser = Browser { folder: Folder::new() };
    let page = async |path: &str| browser.dom(&format!("{}{path}", server.url)).await;
    let overview = page("/").await;
    for expected in ["Tourbillon", "Tasks", "Schedules", "Queues", "href=\"/tasks"] {
        assert!(overview.contains(expected), "the overview has {expected}: {overview}");
    }
    let tasks = page("/tasks").await;
    assert!(tasks.contains(&id) && tasks.contains("later"), "{tasks}");
    assert!(tasks.contains("close-&lt;i&gt;order"), "text is not markup: {tasks}");
    let task = page(&format!("/tasks/{id}")).await;
    for expected in ["failed", "printed &lt;b&gt;bold&lt;/b&gt;", "order", "42"] {
        assert!(task.contains(expected), "the task has {expected}: {task}");
    }
    let schedules = page("/schedules").await;
    assert!(
        schedules.contains("daily-report") && schedules.contains("Asia/Shanghai"),
        "{schedules}"
    );
    // The page's own script has run: it writes instants in local time.
    let bare = server.stranger(reqwest::Method::GET, &format!("/tasks/{id}")).send().await.unwrap();
    let bare = bare.text().await.unwrap();
    let times = |html: &str| -> Vec<String> {
        html.split("<time")
            .skip(1)
            .filter_map(|t| Some(t.split_once('>')?.1.split('<').next()?.to_owned()))
            .collect()
    };
    assert!(!times(&task).is_empty());
    assert_ne!(times(&task), times(&bare), "the script of the page runs");

    assert_eq!(browser.picture(&format!("{}/", server.url), "1280,800").await, (1280, 800));
}
