//! The command line as a person uses it, against a real server.

use std::path::Path;

use serde_json::Value;
use tokio::process::Command;

use crate::support::{Folder, Run, Server, binary, eventually, run};

/// A person with a home of their own, whose server uses the platform's data folder.
struct Person {
    home: Folder,
    url: String,
}

impl Person {
    fn new() -> Person {
        Person { home: Folder::new(), url: "http://127.0.0.1:1".to_owned() }
    }

    /// The person's own server, without options but a free port.
    async fn serves() -> (Person, Server) {
        let mut person = Person::new();
        let mut command = person.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env_remove("TOURBILLON_URL");
        let server = Server::start_by(&person.home, command).await;
        person.url.clone_from(&server.url);
        (person, server)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(words).env("HOME", self.home.path()).env("TOURBILLON_URL", &self.url);
        command.env("XDG_DATA_HOME", self.home.path().join("share")).env("TZ", "Asia/Shanghai");
        command.env_remove("TOURBILLON_TOKEN");
        command
    }

    async fn does(&self, words: &[&str]) -> Run {
        run(self.command(words), 60).await
    }
}

impl Run {
    fn one(self) -> Value {
        let mut lines = self.ended(0).json();
        assert_eq!(lines.len(), 1);
        lines.remove(0)
    }
}

/// The first five minutes: run something in a second, see how it went and what it printed. The token
/// is found by itself, since commands need it.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_a_second_and_what_it_printed() {
    let (person, _server) = Person::serves().await;
    let made =
        person.does(&["in", "1s", "--json", "--", "sh", "-c", "echo hi; echo oh >&2"]).await.one();
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["state"], "scheduled");
    let shown = eventually("it is done", 30, async || {
        let shown = person.does(&["task", "show", id, "--json"]).await.one();
        (shown["state"] == "succeeded").then_some(shown)
    })
    .await;
    assert_eq!(shown["attempts"][0]["exit_code"], 0);
    let table = person.does(&["task", "show", id]).await.ended(0).out;
    assert!(table.contains(id) && table.contains("succeeded"), "{table}");
    assert_eq!(person.does(&["task", "logs", id]).await.ended(0).out, "hi\noh\n");
    let list = person.does(&["task", "list"]).await.ended(0).out;
    assert!(list.contains("succeeded"), "{list}");

    let made = person
        .does(&["in", "0s", "--max-attempts", "1", "--json", "--", "sh", "-c", "echo no; exit 3"])
        .await
        .one();
    let id = made["id"].as_str().unwrap();
    // Following ends when the task does.
    let followed = person.does(&["task", "logs", "-f", id]).await.ended(0);
    assert!(followed.out.contains("no\n") && followed.err.contains("failed"), "{followed:?}");
    let shown = person.does(&["task", "show", id, "--json"]).await.one();
    assert_eq!(
        (&shown["state"], &shown["attempts"][0]["exit_code"]),
        (&"failed".into(), &3.into())
    );
    person.does(&["task", "retry", id]).await.ended(0);
    person.does(&["task", "list", "--state", "scheduled"]).await;

    for (words, status) in [
        (&["task", "show", "0193e1f0-0000-7000-8000-000000000001"][..], 1),
        (&["task", "cancel", "0193e1f0-0000-7000-8000-000000000001"], 1),
        (&["task", "show", "17"], 2),
        (&["in", "soon", "--", "true"], 2),
        (&["schedule", "show", "none"], 1),
    ] {
        let run = person.does(words).await.ended(status);
        assert!(run.out.is_empty() && !run.err.is_empty(), "{words:?}: {run:?}");
        assert!(!run.err.contains("panicked"), "{run:?}");
    }
}

/// Every command a person types to look around answers, as a table and as JSON.
#[tokio::test(flavor = "multi_thread")]
async fn every_look_around_answers() {
    let (person, _server) = Person::serves().await;
    person.does(&["every", "1h", "--name", "hourly", "--", "true"]).await.ended(0);
    person
        .does(&[
            "cron",
            "0 9 * * mon-fri",
            "--tz",
            "Europe/Paris",
            "--name",
            "morning",
            "--http",
            "GET",
            "http://127.0.0.1:1/",
        ])
        .await
        .ended(0);
    person
        .does(&["at", "2030-12-01 09:00", "--tz", "Asia/Shanghai", "--key", "k", "--worker"])
        .await
        .ended(0);
    for words in [
        &["task", "list"][..],
        &["schedule", "list"],
        &["schedule", "show", "hourly"],
        &["schedule", "preview", "morning", "-n", "2"],
        &["queue", "list"],
        &["stats"],
        &["nodes"],
        &["config", "show"],
    ] {
        let table = person.does(words).await.ended(0).out;
        assert!(!table.trim().is_empty(), "{words:?}");
        let json = person.does(&[words, &["--json"]].concat()).await.ended(0).json();
        assert!(!json.is_empty(), "{words:?}");
    }
    person.does(&["schedule", "pause", "hourly"]).await.ended(0);
    let shown = person.does(&["schedule", "show", "hourly", "--json"]).await.one();
    assert_eq!(shown["paused"], true);
    person.does(&["schedule", "resume", "hourly"]).await.ended(0);
    person.does(&["schedule", "trigger", "hourly"]).await.ended(0);
    let ran = eventually("the trigger ran", 30, async || {
        let run = person.does(&["task", "list", "--state", "succeeded", "--json"]).await;
        run.json().pop()
    })
    .await;
    assert_eq!(ran["schedule"], "hourly");
    person.does(&["queue", "pause", "default"]).await.ended(0);
    person.does(&["queue", "resume", "default"]).await.ended(0);
    let exported = person.does(&["export", "schedules"]).await.ended(0).json();
    assert_eq!(exported.len(), 2);
    let exported = person.does(&["export", "tasks"]).await.ended(0).json();
    assert!(exported.iter().any(|task| task["id"] == ran["id"]));
    person.does(&["schedule", "remove", "hourly"]).await.ended(0);
    person.does(&["schedule", "show", "hourly"]).await.ended(1);
}

/// Without a server: what a person gets is what is wrong and the address, at once.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_the_address_is_named() {
    let person = Person::new();
    let run = person.does(&["task", "list"]).await.ended(1);
    assert!(run.err.contains("127.0.0.1:1"), "{run:?}");
    let words = [
        "schedule",
        "preview",
        "--cron",
        "30 2 * * *",
        "--tz",
        "America/New_York",
        "--after",
        "2026-03-07T00:00:00Z",
        "-n",
        "3",
        "--json",
    ];
    let times: Vec<Value> = person.does(&words).await.ended(0).json();
    let times: Vec<_> = times.iter().map(|t| t["at"].as_str().unwrap().to_owned()).collect();
    // The night of 8 March has no 02:30: it runs at the first instant after the gap.
    assert_eq!(times, ["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]);
    let never = ["schedule", "preview", "--cron", "0 0 30 2 *", "-n", "1"];
    let run = person.does(&never).await.ended(1);
    assert!(run.out.is_empty() && !run.err.is_empty());
    let wrong = person.does(&["schedule", "preview", "--cron", "0 0 32 * *"]).await.ended(2);
    assert!(wrong.err.contains("day"), "{wrong:?}");
}

/// An operator's crontabs, as they are: imported twice they make the same schedules, and the schedules
/// run what cron ran.
#[tokio::test(flavor = "multi_thread")]
async fn crontabs_are_taken_over() {
    let (person, _server) = Person::serves().await;
    let file = |name: &str, text: &str| {
        person.home.write(name, text);
        person.home.file(name)
    };
    let marker = person.home.file("ran");
    let users = file(
        "user.crontab",
        &format!(
            "# backups\nSHELL=/bin/sh\nGREETING=\"hello\"\n\n*/5 * * * *  echo $GREETING >> {marker}\n\
             30 2 * * sun  /usr/bin/weekly --now%with stdin\n@daily  true\n"
        ),
    );
    let dry =
        person.does(&["import", "crontab", &users, "--dry-run", "--json"]).await.ended(0).json();
    assert_eq!(dry.len(), 3);
    assert!(
        dry.iter().all(|l| l["tz"] == "Asia/Shanghai" && l["next"].as_array().unwrap().len() == 3)
    );
    assert!(
        person.does(&["schedule", "list", "--json"]).await.out.is_empty(),
        "nothing was stored"
    );
    for _ in 0..2 {
        person.does(&["import", "crontab", &users]).await.ended(0);
    }
    let stored = person.does(&["schedule", "list", "--json"]).await.ended(0).json();
    assert_eq!(stored.len(), 3);
    let name = dry[0]["name"].as_str().unwrap();
    person.does(&["schedule", "trigger", name]).await.ended(0);
    eventually("the command ran in its shell with its environment", 30, async || {
        (person.home.lines("ran") == ["hello"]).then_some(())
    })
    .await;

    let system = file(
        "system.crontab",
        "SHELL=/bin/sh\n17 *  * * *  root  cd / && run-parts --report /etc/cron.hourly\n\
         25 6  * * *  root  test -x /usr/sbin/anacron || true\n",
    );
    let dry = person
        .does(&["import", "crontab", "--system", &system, "--dry-run", "--json"])
        .await
        .ended(0);
    assert_eq!(dry.json()[0]["command"], "cd / && run-parts --report /etc/cron.hourly");
    assert!(dry.err.contains("root"), "who ran it is said: {}", dry.err);

    let broken = file("broken.crontab", "* * * * * true\n61 * * * * false\n");
    let run = person.does(&["import", "crontab", &broken, "--dry-run", "--json"]).await.ended(1);
    assert!(run.err.contains("broken.crontab:2"), "{}", run.err);
    assert_eq!(run.json().len(), 1, "what is right is shown");
}

/// The crontabs of this very machine, whatever is in them.
#[tokio::test(flavor = "multi_thread")]
async fn the_crontabs_of_this_machine_can_be_read() {
    let person = Person::new();
    let mut files = vec![Path::new("/etc/crontab").to_owned()];
    let folder = std::fs::read_dir("/etc/cron.d");
    files.extend(folder.into_iter().flatten().flatten().map(|entry| entry.path()));
    for file in files.iter().filter(|f| f.is_file() && std::fs::read(f).is_ok()) {
        // Files of other programs may lie there too; cron itself passes over names with dots.
        if file.file_name().and_then(|n| n.to_str()).is_none_or(|name| name.contains('.')) {
            continue;
        }
        let text = std::fs::read_to_string(file).expect("a crontab is text");
        let expected = text
            .lines()
            .map(str::trim_start)
            .filter(|line| line.starts_with(|c: char| c.is_ascii_digit() || c == '*' || c == '@'));
        let words =
            ["import", "crontab", "--system", file.to_str().unwrap(), "--dry-run", "--json"];
        let run = person.does(&words).await;
        assert_eq!(run.json().len(), expected.count(), "{}: {}", file.display(), run.err);
        assert!(!run.err.contains("error"), "{}: {}", file.display(), run.err);
    }
    // The usual one of a Debian system, for machines that have none.
    let usual = "SHELL=/bin/sh\nPATH=/usr/local/sbin:/usr/bin\n\
        17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly\n\
        25 6\t* * *\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }\n\
        47 6\t* * 7\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.weekly; }\n\
        52 6\t1 * *\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.monthly; }\n\
        30 3 * * 0 root test -e /run/systemd/system || SERVICE_MODE=1 /usr/lib/e2scrub_all_cron\n\
        @reboot root true\n";
    person.home.write("usual", usual);
    let run = person
        .does(&["import", "crontab", "--system", &person.home.file("usual"), "--dry-run", "--json"])
        .await;
    assert!(run.json().len() >= 5, "{run:?}");
}
