//! `/v1/stats`: counts, and figures over time.
//!
//! Counts are kept by the store; figures come from its rows of minutes. Rows are never counted.

use std::collections::{BTreeMap, HashMap};

use axum::extract::State;
use axum::response::Response;
use tourbillon_node::api::QueueView;
use tourbillon_store::QueueId;
use tourbillon_store::stats::StatsRow;
use tourbillon_store::time::MINUTE;
use tourbillon_wire::{
    KindStats, Problem, QueueStats, Series, SeriesQuery, StateCounts, Stats, StatsQuery, Timestamp,
};

use super::reply;
use crate::body::Params;
use crate::convert::time;
use crate::failure::{Failure, Result};
use crate::show;
use crate::show::at;
use crate::show::stats::{Sum, percentiles};
use crate::state::App;

/// The span of figures unless asked otherwise.
const HOUR: i64 = 60 * MINUTE;
/// About how many points a series has unless asked otherwise.
const POINTS: i64 = 60;
/// Kinds shown, the busiest first.
const KINDS_MAX: usize = 100;
/// Schedules counted.
const SCHEDULES_MAX: usize = 10_000;

/// Show counts, and figures of the last hour or another span.
#[utoipa::path(
    get, path = "/v1/stats", tag = "stats",
    params(StatsQuery),
    responses(
        (status = 200, description = "The figures.", body = Stats),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn show(
    State(app): State<App>,
    Params(query): Params<StatsQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let most = app.limits().stats_minutes * MINUTE;
    let span = query.span.map(|d| time::span(d, "span", MINUTE, most)).transpose()?;
    Ok(reply::ok(&stats(&app, &namespace, span.unwrap_or(HOUR)).await?))
}

/// Counts, and figures of the last `span` microseconds.
pub(crate) async fn stats(app: &App, namespace: &str, span: i64) -> Result<Stats> {
    let now = app.node.now();
    let since = now.plus(-span);
    let views = app.node.queues(namespace).await?;
    let minutes = app.node.query(move |q| q.series(since.minute() + 1, now.minute() + 1)).await?;
    let mut total = Sum::default();
    let mut by_queue: HashMap<QueueId, Sum> = HashMap::new();
    let mut by_kind: BTreeMap<(QueueId, String), Sum> = BTreeMap::new();
    let ours: HashMap<QueueId, &QueueView> = views.iter().map(|v| (v.record.id, v)).collect();
    for row in minutes.iter().flat_map(|(_, rows)| rows) {
        if !ours.contains_key(&row.queue) {
            continue;
        }
        total.add(row);
        by_queue.entry(row.queue).or_default().add(row);
        by_kind.entry((row.queue, row.kind.clone())).or_default().add(row);
    }
    let mut counts = StateCounts::default();
    let mut queues = Vec::with_capacity(views.len());
    for view in &views {
        let sum = by_queue.remove(&view.record.id).unwrap_or_default();
        let of_queue = show::queue::counts(view);
        show::queue::add(&mut counts, &of_queue);
        queues.push(QueueStats {
            queue: view.record.name.clone(),
            paused: view.record.config.paused,
            concurrency: view.record.config.concurrency,
            counts: of_queue,
            started: sum.started(),
            succeeded: sum.succeeded,
            failed: sum.failed,
            lateness_ms: percentiles(&sum.lateness),
            duration_ms: percentiles(&sum.duration),
        });
    }
    queues.sort_by(|a, b| a.queue.cmp(&b.queue));
    let mut kinds: Vec<KindStats> = by_kind
        .into_iter()
        .filter_map(|((queue, kind), sum)| {
            Some(KindStats {
                queue: ours.get(&queue)?.record.name.clone(),
                kind,
                started: sum.started(),
                succeeded: sum.succeeded,
                failed: sum.failed,
                lateness_ms: percentiles(&sum.lateness),
                duration_ms: percentiles(&sum.duration),
            })
        })
        .collect();
    kinds.sort_by(|a, b| b.started.cmp(&a.started).then_with(|| a.kind.cmp(&b.kind)));
    kinds.truncate(KINDS_MAX);
    let schedules = match app.namespace_id(namespace).await? {
        None => 0,
        Some(id) => app.node.query(move |q| q.schedules(id, None, SCHEDULES_MAX)).await?.len(),
    };
    Ok(Stats {
        now: at(now),
        since: at(since),
        counts,
        started: total.started(),
        lateness_ms: percentiles(&total.lateness),
        duration_ms: percentiles(&total.duration),
        schedules: schedules as u64,
        queues,
        kinds,
    })
}

/// Show figures over time.
#[utoipa::path(
    get, path = "/v1/stats/series", tag = "stats",
    params(SeriesQuery),
    responses(
        (status = 200, description = "The points, earliest first.", body = Series),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn over_time(
    State(app): State<App>,
    Params(query): Params<SeriesQuery>,
) -> Result<Response> {
    Ok(reply::ok(&series(&app, query).await?))
}

/// Figures over time.
pub(crate) async fn series(app: &App, query: SeriesQuery) -> Result<Series> {
    let namespace = app.namespace(query.namespace)?;
    let now = app.node.now();
    let to = query.to.map(|t| time::instant(t, "to")).transpose()?.unwrap_or(now);
    let from = query.from.map(|t| time::instant(t, "from")).transpose()?;
    let from = from.unwrap_or_else(|| to.plus(-HOUR));
    let most = app.limits().stats_minutes;
    if to < from || to.since(from) > most * MINUTE {
        return Err(Failure::invalid(
            "from",
            format!("from {} to {}", at(from), at(to)),
            format!("`from` before `to`, at most {most} minutes apart"),
        ));
    }
    let (first, end) = (from.minute(), to.plus(MINUTE - 1).minute());
    let step = match query.step {
        None => ((end - first) / POINTS).max(1),
        Some(step) => time::span(step, "step", MINUTE, most * MINUTE)? / MINUTE,
    };
    let views = app.node.queues(&namespace).await?;
    let ours: HashMap<QueueId, String> =
        views.into_iter().map(|v| (v.record.id, v.record.name)).collect();
    let wanted = |row: &StatsRow| {
        ours.get(&row.queue).is_some_and(|name| query.queue.as_ref().is_none_or(|q| q == name))
            && query.kind.as_ref().is_none_or(|k| *k == row.kind)
    };
    let minutes = app.node.query(move |q| q.series(first, end)).await?;
    let count = ((end - first + step - 1) / step).max(0);
    let mut sums = vec![Sum::default(); count as usize];
    for (minute, rows) in &minutes {
        let index = usize::try_from((minute - first) / step).unwrap_or(usize::MAX);
        if let Some(sum) = sums.get_mut(index) {
            rows.iter().filter(|row| wanted(row)).for_each(|row| sum.add(row));
        }
    }
    let start = |index: usize| (first + index as i64 * step).saturating_mul(MINUTE);
    Ok(Series {
        step_secs: (step * 60) as u64,
        points: sums
            .iter()
            .enumerate()
            .map(|(i, sum)| sum.point(Timestamp::from_micros(start(i))))
            .collect(),
    })
}
