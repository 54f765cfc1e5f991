//! `tourbillon schedule show NAME`.

use clap::Args;
use tourbillon_wire::Schedule;

use super::list::rule;
use crate::commands::App;
use crate::exit::Status;
use crate::output::{Out, text, trimmed};
use crate::when;

/// Show a schedule.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Its name.
    name: String,
}

impl Show {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let schedule = app.client()?.schedule(&self.name).await?;
        if app.out.is_json() {
            app.out.object(&schedule)?;
        } else {
            print(app.out, &schedule)?;
        }
        Ok(Status::Done)
    }
}

fn print(out: Out, s: &Schedule) -> anyhow::Result<()> {
    /// The word that documents use.
    fn word<T: serde::Serialize>(value: &T) -> anyhow::Result<String> {
        Ok(serde_json::to_string(value)?.trim_matches('"').to_owned())
    }
    let next = s.next_at.map(|at| {
        let local = s.next_local.as_ref().map_or_else(String::new, |local| format!(", {local}"));
        let why = s.why.as_deref().filter(|why| *why != "normal");
        let why = why.map_or_else(String::new, |why| format!(", {why}"));
        format!("{at} ({}){local}{why}", when::distance(at))
    });
    let last = s
        .last
        .as_ref()
        .map(|last| format!("{} {}, task {}", last.logical_time, last.state, last.task_id));
    let rows: [(&str, Option<String>); 22] = [
        ("name", Some(s.name.clone())),
        ("namespace", Some(s.namespace.clone())),
        ("uid", Some(s.uid.to_string())),
        ("rule", Some(rule(s))),
        ("dialect", s.dialect.as_ref().map(word).transpose()?),
        ("zone", Some(s.tz.clone())),
        ("gap, fold", Some(format!("{}, {}", word(&s.gap)?, word(&s.fold)?))),
        ("start", s.start.map(|at| at.to_string())),
        ("end", s.end.map(|at| at.to_string())),
        ("max runs", s.max_runs.map(|n| n.to_string())),
        ("jitter", (s.jitter.as_micros() > 0).then(|| s.jitter.to_string())),
        ("exclude", (!s.exclude.is_empty()).then(|| s.exclude.join(", "))),
        ("misfire", Some(word(&s.misfire)?)),
        ("overlap", Some(word(&s.overlap)?)),
        ("paused", Some(if s.paused { "yes" } else { "no" }.to_owned())),
        ("expect within", s.expect_within.map(|d| d.to_string())),
        ("overdue", s.overdue.then(|| "yes".to_owned())),
        ("task", Some(serde_json::to_string(&s.task)?)),
        ("next", Some(next.unwrap_or_else(|| "none".to_owned()))),
        ("last", last),
        ("runs", Some(s.runs.to_string())),
        ("version", Some(s.version.to_string())),
    ];
    let mut table = out.bare_table();
    for (name, value) in rows {
        if let Some(value) = value {
            table.add_row([text(name), text(value)]);
        }
    }
    out.line(trimmed(table))
}
