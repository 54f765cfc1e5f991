//! The console: every page in both languages, escaping, forms.

use reqwest::Method;
use serde_json::json;

use crate::common::{Reply, Server, later, until, with, work};

/// A text that would run if it were not escaped.
const EVIL: &str = "<script>alert(1)</script>\"'&";

#[tokio::test]
async fn every_page_is_there_and_nothing_of_a_user_runs() {
    let server = Server::start().await;
    let task = with(
        later(),
        json!({"key": EVIL, "queue": "q<b>", "kind": "k<b>",
        "payload": {"x": EVIL}, "tags": {"t": EVIL}}),
    );
    let id = server.create(task).await;
    let task = json!({"target": {"worker": {}}, "payload": EVIL, "kind": "k<b>"});
    let schedule = json!({"cron": "*/5 * * * *", "task": task});
    server.put("/v1/schedules/s%3Cb%3E", schedule).await.expect(201);
    let calendar = json!({"weekdays": ["sun"], "ranges": [{"from": "2026-10-01", "to": "2026-10-07"}],
        "ics": "BEGIN:VEVENT\r\nSUMMARY:<script>alert(1)</script>\r\nDTSTART:20261225\r\nEND:VEVENT"});
    server.put("/v1/calendars/c%3Cb%3E", calendar).await.expect(201);
    let task = json!({"target": {"worker": {}}});
    let monthly = json!({"calendar": {"every": "1 month", "on": 31, "at": "02:00"}, "task": task,
        "exclude": ["c<b>"]});
    server.put("/v1/schedules/monthly", monthly).await.expect(201);
    let daily = json!({"cron": "0 9 * * sat,sun", "task": task, "exclude": ["c<b>"]});
    server.put("/v1/schedules/weekly", daily).await.expect(201);
    let run =
        server.create(with(work(), json!({"queue": "w", "retry": {"max_attempts": 1}}))).await;
    let claimed = server.claim("w").await;
    let ended =
        json!([{"token": claimed["token"], "outcome": "failed", "error": EVIL, "result": EVIL}]);
    server.post("/v1/attempts/complete", ended).await.expect(200);
    server.when(&run, "failed").await;
    for path in [
        "/",
        "/wheel",
        "/tasks",
        "/dead-letters",
        "/schedules",
        "/queues",
        "/nodes",
        "/analysis",
        "/login",
        "/tasks?find=x&state=failed&queue=w&kind=worker",
        "/queues/q%3Cb%3E",
        "/schedules/s%3Cb%3E",
        "/schedules/monthly",
        "/schedules/weekly",
        "/calendars",
        "/calendars/c%3Cb%3E",
        "/analysis?hours=168",
        "/?namespace=other",
        &format!("/tasks/{id}"),
        &format!("/tasks/{run}"),
        &format!("/tasks?find={}", "%3Cscript%3E"),
    ] {
        for (language, word) in [("en", "lang=\"en\""), ("zh-CN", "lang=\"zh\"")] {
            let request = server.request(Method::GET, path);
            let request = request.header("accept", "text/html").header("accept-language", language);
            let page = Reply::read(request.send().await.unwrap()).await.expect(200);
            assert!(page.header("content-type").starts_with("text/html"));
            let policy = page.header("content-security-policy");
            assert!(
                policy.contains("default-src 'none'") && !policy.contains("unsafe"),
                "{policy}"
            );
            assert!(page.text.contains(word), "{path}");
            for evil in ["<script>a", "q<b>", "k<b>", "s<b>", "c<b>", "style=\""] {
                assert!(!page.text.contains(evil), "{path} has {evil}");
            }
            let scripts = page.text.matches("<script").count();
            assert!(scripts <= 1, "{path} has {scripts} scripts");
            assert!(!page.text.contains("http://") || path == "/" || page.text.contains("xmlns"));
        }
    }
    let page = server.page(&format!("/tasks/{run}")).await;
    assert!(page.text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    // The rule stands there in words, with what it leaves out, and why.
    let page = server.page("/schedules").await;
    let words = "every month on day 31 (or the month&#39;s last) at 02:00";
    assert!(page.text.contains(&words.replace("&#39;", "'")) || page.text.contains(words));
    assert!(page.text.contains("href=\"/calendars/c%3Cb%3E\""));
    let page = server.page("/schedules/weekly").await;
    assert!(page.text.contains("every sun") && page.text.contains("left out"), "{}", page.text);
    let page = server.page("/calendars/c%3Cb%3E").await;
    for part in ["every sun", "/schedules/monthly", "2026-10-01", "Next days left out"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
}

#[tokio::test]
async fn buttons_do_what_they_say() {
    let server = Server::start().await;
    let id = server.create(later()).await;
    let reply = server.form(&format!("/tasks/{id}/cancel"), &[]).await.expect(303);
    assert_eq!(reply.header("location"), format!("/tasks/{id}?done=yes"));
    server.when(&id, "cancelled").await;
    server.form(&format!("/tasks/{id}/retry"), &[]).await.expect(303);
    server.when(&id, "ready").await;
    let next = server.create(later()).await;
    server.form(&format!("/tasks/{next}/run"), &[]).await.expect(303);
    server.when(&next, "ready").await;

    server.form("/queues/default/pause", &[]).await.expect(303);
    assert_eq!(server.get("/v1/queues/default").await.json()["paused"], true);
    server.form("/queues/default/resume", &[]).await.expect(303);
    let limits = [("concurrency", "7"), ("per_key", ""), ("count", "5"), ("per", "1m")];
    server.form("/queues/default/limits", &limits).await.expect(303);
    let queue = server.get("/v1/queues/default").await.json();
    assert_eq!((&queue["concurrency"], &queue["paused"]), (&json!(7), &json!(false)));
    assert_eq!(queue["rate"], json!({"per": "1m", "count": 5, "burst": 5}));
    let wrong = server.form("/queues/default/limits", &[("concurrency", "many")]).await;
    assert_eq!(wrong.status, 422);
    assert!(wrong.header("content-type").starts_with("text/html"));

    let schedule = json!({"every": "1h", "task": {"target": {"worker": {}}}});
    server.put("/v1/schedules/s", schedule).await.expect(201);
    server.form("/schedules/s/pause", &[]).await.expect(303);
    assert_eq!(server.get("/v1/schedules/s").await.json()["paused"], true);
    server.form("/schedules/s/resume", &[]).await.expect(303);
    let reply = server.form("/schedules/s/trigger", &[]).await.expect(303);
    assert!(reply.header("location").starts_with("/tasks/"));
    server.form("/schedules/s/ask-delete", &[]).await.expect(200);
    server.get("/v1/schedules/s").await.expect(200);
    server.form("/schedules/s/delete", &[]).await.expect(303);
    server.get("/v1/schedules/s").await.expect(404);
    server.put("/v1/calendars/c", json!({"weekdays": ["sun"]})).await.expect(201);
    let named = json!({"every": "1h", "exclude": ["c"], "task": {"target": {"worker": {}}}});
    server.put("/v1/schedules/named", named).await.expect(201);
    server.form("/calendars/c/ask-delete", &[]).await.expect(200);
    let refused = server.form("/calendars/c/delete", &[]).await.expect(409);
    assert!(refused.text.contains("named"), "it says by whom it is named: {}", refused.text);
    server.form("/schedules/named/delete", &[]).await.expect(303);
    server.form("/calendars/c/delete", &[]).await.expect(303);
    server.get("/v1/calendars/c").await.expect(404);
    for path in [
        "/tasks/x/cancel",
        "/queues/none/pause",
        "/schedules/none/pause",
        "/queues/default/x",
        "/calendars/none/delete",
    ] {
        let reply = server.form(path, &[]).await.expect(404);
        assert!(reply.header("content-type").starts_with("text/html"), "{path}");
    }
}

#[tokio::test]
async fn acting_on_many_asks_first() {
    let server = Server::start().await;
    for _ in 0..3 {
        server.create(with(later(), json!({"queue": "p"}))).await;
    }
    let asked = server.form("/bulk/cancel", &[("queue", "p")]).await.expect(200);
    assert!(asked.text.contains("<b>3</b>"), "{}", asked.text);
    assert_eq!(server.get("/v1/queues/p").await.json()["counts"]["scheduled"], 3);
    server.form("/bulk/cancel", &[("queue", "p"), ("confirmed", "yes")]).await.expect(200);
    until("they are cancelled", async || {
        server.get("/v1/queues/p").await.json()["counts"]["cancelled"] == 3
    })
    .await;
    let again = [("queue", "p"), ("state", "cancelled"), ("confirmed", "yes")];
    server.form("/bulk/retry", &again).await.expect(200);
    // Everything at once is never meant.
    assert_eq!(server.form("/bulk/cancel", &[("confirmed", "yes")]).await.status, 422);
}

#[tokio::test]
async fn small_things() {
    let server = Server::start().await;
    let id = server.create(later()).await;
    let reply = server.page(&format!("/tasks?find={id}")).await.expect(303);
    assert_eq!(reply.header("location"), format!("/tasks/{id}"));
    let none = server.page("/tasks/018f2f6e-1111-7000-8000-0000000000aa").await.expect(404);
    assert!(none.header("content-type").starts_with("text/html"));
    let chosen = server.page("/language/zh?next=%2Fqueues").await.expect(303);
    assert_eq!(chosen.header("location"), "/queues");
    let cookie = chosen.header("set-cookie").split(';').next().unwrap().to_owned();
    let request = server.request(Method::GET, "/queues").header("cookie", cookie);
    let page = Reply::read(request.send().await.unwrap()).await;
    assert!(page.text.contains("队列"));
    for (path, media) in [
        ("/assets/console.css", "text/css"),
        ("/assets/console.js", "text/javascript"),
        ("/assets/icon.svg", "image/svg+xml"),
    ] {
        assert!(server.get(path).await.expect(200).header("content-type").starts_with(media));
    }
    // A page pointed at from a name that is not ours is refused as a page.
    let request = server.request(Method::GET, "/").header("host", "evil.example");
    let page = Reply::read(request.header("accept", "text/html").send().await.unwrap()).await;
    assert_eq!(page.status, 403);
    assert!(page.header("content-type").starts_with("text/html"));
}
