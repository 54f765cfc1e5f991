//! `GET /metrics`: numbers in the Prometheus text format.

use std::fmt::{Display, Write};
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use tourbillon_store::stats::Histogram;
use tourbillon_wire::Problem;

use crate::failure::Result;
use crate::show;
use crate::state::App;

/// Minutes over which lateness and duration are shown.
const MINUTES: i64 = 5;

/// Show the node's numbers in the Prometheus text format.
#[utoipa::path(
    get, path = "/metrics", tag = "stats",
    responses(
        (status = 200, description = "The numbers.", body = String, content_type = "text/plain"),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn show(State(app): State<App>) -> Result<Response> {
    let mut text = Text(String::with_capacity(8 << 10));
    node(&mut text, &app);
    queues(&mut text, &app).await?;
    latencies(&mut text, &app).await?;
    requests(&mut text, &app);
    let media = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, media)], text.0).into_response())
}

fn node(text: &mut Text, app: &App) {
    let status = app.node.status();
    let gauges = &status.gauges;
    let ready = u8::from(status.ready.is_ok());
    text.gauge("tourbillon_ready", "Whether the node takes work.", ready);
    text.gauge("tourbillon_shards", "Shards the node holds.", status.shards);
    text.gauge("tourbillon_epoch", "Highest epoch of its shards.", status.epoch);
    text.gauge("tourbillon_resident_tasks", "Tasks in its wheel.", status.resident);
    text.gauge("tourbillon_ready_tasks", "Tasks in memory that are due.", status.ready_tasks);
    text.gauge("tourbillon_running_attempts", "Attempts under way.", status.running);
    text.gauge("tourbillon_write_backlog", "Writes that wait to commit.", status.backlog);
    text.counter("tourbillon_store_commits_total", "Transactions committed.", gauges.commits);
    text.gauge("tourbillon_store_bytes", "Bytes of data files.", gauges.data_bytes);
    text.gauge("tourbillon_store_wal_bytes", "Bytes of the write-ahead log.", gauges.wal_bytes);
    text.counter(
        "tourbillon_store_checkpoints_total",
        "Checkpoints that finished.",
        gauges.checkpoints,
    );
}

async fn queues(text: &mut Text, app: &App) -> Result<()> {
    let mut views = Vec::new();
    for (_, namespace) in app.node.query(|q| q.namespaces()).await? {
        views.extend(app.node.queues(&namespace).await?);
    }
    text.head("tourbillon_tasks", "gauge", "Tasks by state; final ones while history is kept.");
    for view in &views {
        let counts = show::queue::counts(view);
        for (state, n) in [
            ("scheduled", counts.scheduled),
            ("ready", counts.ready),
            ("running", counts.running),
            ("succeeded", counts.succeeded),
            ("failed", counts.failed),
            ("cancelled", counts.cancelled),
            ("expired", counts.expired),
            ("skipped", counts.skipped),
        ] {
            let r = &view.record;
            let labels =
                [("namespace", r.namespace_name.as_str()), ("queue", &r.name), ("state", state)];
            text.line("tourbillon_tasks", &labels, n);
        }
    }
    text.head("tourbillon_queue_paused", "gauge", "Whether a queue is paused.");
    for view in &views {
        let r = &view.record;
        let labels = [("namespace", r.namespace_name.as_str()), ("queue", r.name.as_str())];
        text.line("tourbillon_queue_paused", &labels, u8::from(r.config.paused));
    }
    Ok(())
}

async fn latencies(text: &mut Text, app: &App) -> Result<()> {
    let minute = app.node.now().minute();
    let rows = app.node.query(move |q| q.series(minute - MINUTES, minute + 1)).await?;
    let (mut lateness, mut duration) = (Histogram::default(), Histogram::default());
    for row in rows.iter().flat_map(|(_, rows)| rows) {
        lateness.merge(&row.lateness);
        duration.merge(&row.duration);
    }
    for (name, help, histogram) in [
        ("tourbillon_lateness_seconds", "Attempt start minus due time, last minutes.", &lateness),
        ("tourbillon_duration_seconds", "Attempt end minus start, last minutes.", &duration),
    ] {
        text.head(name, "gauge", help);
        for q in ["0.5", "0.9", "0.99", "1"] {
            let at = q.parse().ok().and_then(|q| histogram.quantile(q));
            if let Some(micros) = at {
                text.line(name, &[("quantile", q)], micros as f64 / 1e6);
            }
        }
    }
    Ok(())
}

fn requests(text: &mut Text, app: &App) {
    let name = "tourbillon_http_responses_total";
    text.head(name, "counter", "Requests answered, by class of status.");
    for (class, n) in app.answered.iter().enumerate().skip(2) {
        text.line(name, &[("class", &format!("{class}xx"))], n.load(Ordering::Relaxed));
    }
}

struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{label}=\"{text}\"");
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.line(name, &[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "counter", help);
        self.line(name, &[], value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut text = Text(String::new());
        text.line("x", &[("queue", "a\"b\\c\nd"), ("state", "ready")], 7);
        assert_eq!(text.0, "x{queue=\"a\\\"b\\\\c\\nd\",state=\"ready\"} 7\n");
    }
}
