//! `POST /v1/tasks/cancel` and `/retry`: many tasks by filter.
//!
//! One request changes a bounded number and says whether there may be more, so that it stays
//! short and nothing is done twice when it is repeated: what was changed no longer matches.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::stream;
use tourbillon_node::api::{Cancelled, NodeError};
use tourbillon_store::{State as TaskStateOf, TaskId};
use tourbillon_wire::{ManyReply, ManyRequest, NamespaceQuery, Problem, TaskFilter, code};

use super::list::{self, Wanted};
use super::reply;
use crate::body::{Doc, Params};
use crate::doors::Caller;
use crate::failure::{Failure, Result};
use crate::state::App;

/// Changes under way at a time.
const AT_ONCE: usize = 64;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Cancel what is not over.
    Cancel,
    /// Try again what failed, or what is over in the state given.
    Retry,
}

/// Cancel many tasks.
///
/// Those that are over do not match. At most 1,000 are changed; `more` says whether to ask again.
#[utoipa::path(
    post, path = "/v1/tasks/cancel", tag = "tasks",
    params(NamespaceQuery),
    request_body = ManyRequest,
    responses(
        (status = 200, description = "What became of them.", body = ManyReply),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(query): Params<NamespaceQuery>,
    Doc(request): Doc<ManyRequest>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    Ok(reply::ok(&many(&app, &namespace, request, Action::Cancel, &caller).await?))
}

/// Try many tasks again.
///
/// Without a `state` in the filter: those that failed. At most 1,000 are changed; `more` says
/// whether to ask again.
#[utoipa::path(
    post, path = "/v1/tasks/retry", tag = "tasks",
    params(NamespaceQuery),
    request_body = ManyRequest,
    responses(
        (status = 200, description = "What became of them.", body = ManyReply),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn retry(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(query): Params<NamespaceQuery>,
    Doc(request): Doc<ManyRequest>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    Ok(reply::ok(&many(&app, &namespace, request, Action::Retry, &caller).await?))
}

/// Does it to at most the bound's number of matching tasks.
pub(crate) async fn many(
    app: &App,
    namespace: &str,
    request: ManyRequest,
    action: Action,
    by: &Caller,
) -> Result<ManyReply> {
    if request.filter == TaskFilter::default() {
        return Err(Failure::invalid(
            "filter",
            "it is empty",
            "at least one condition, such as `queue` or `state`",
        ));
    }
    let (ids, more) = if request.filter.ids.is_empty() {
        find(app, namespace, request.filter, action).await?
    } else {
        named(app, request.filter)?
    };
    let mut reply = ManyReply { matched: ids.len() as u64, more, ..ManyReply::default() };
    if request.dry_run {
        reply.dry_run = true;
        return Ok(reply);
    }
    let results = stream::iter(ids).map(|id| async move {
        match action {
            Action::Cancel => {
                app.cancel(namespace, id, by).await.map(|c| c == Cancelled::Cancelling)
            }
            Action::Retry => app.retry(namespace, id, by).await.map(|()| false),
        }
    });
    let mut results = results.buffer_unordered(AT_ONCE);
    while let Some(result) = results.next().await {
        match result {
            Ok(cancelling) => {
                reply.changed += 1;
                reply.cancelling += u64::from(cancelling);
            }
            Err(error @ (NodeError::Busy { .. } | NodeError::Full | NodeError::Store(_))) => {
                // Nothing was done yet: say so. Else tell what was done, and to ask again.
                if reply.changed == 0 {
                    return Err(error.into());
                }
                reply.more = true;
            }
            Err(_) => reply.refused += 1,
        }
    }
    Ok(reply)
}

/// The tasks of a list of ids.
fn named(app: &App, filter: TaskFilter) -> Result<(Vec<TaskId>, bool)> {
    let most = app.limits().many;
    if filter.ids.len() > most {
        return Err(Failure::new(422, code::INVALID)
            .field("filter.ids")
            .detail(format!("{} ids", filter.ids.len()))
            .expected(format!("at most {most}")));
    }
    let others = TaskFilter { ids: Vec::new(), ..filter.clone() };
    if others != TaskFilter::default() {
        return Err(Failure::invalid(
            "filter.ids",
            "ids and other conditions are both given",
            "one or the other",
        ));
    }
    let mut ids: Vec<TaskId> = filter.ids.iter().map(|id| TaskId(id.as_u128())).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok((ids, false))
}

/// The first tasks that match, and whether there may be more.
async fn find(
    app: &App,
    namespace: &str,
    filter: TaskFilter,
    action: Action,
) -> Result<(Vec<TaskId>, bool)> {
    use TaskStateOf::{Failed, Running, Scheduled};
    let over = filter.state.map(tourbillon_wire::TaskState::is_final);
    let (among, fits): (&[TaskStateOf], bool) = match action {
        Action::Cancel => (&[Scheduled, Running], over != Some(true)),
        Action::Retry => (&[Failed], over != Some(false)),
    };
    if !fits {
        return Err(Failure::invalid(
            "filter.state",
            "no task in this state can be changed so",
            match action {
                Action::Cancel => "`scheduled`, `ready` or `running`",
                Action::Retry => "a final state, such as `failed`",
            },
        ));
    }
    // A due range lists scheduled tasks only.
    let ranged = filter.due_after.is_some() || filter.due_before.is_some();
    let among = if ranged && action == Action::Cancel { &[Scheduled] } else { among };
    let wanted = Wanted {
        queue: filter.queue,
        state: filter.state,
        kind: filter.kind,
        key: filter.key,
        schedule: filter.schedule,
        due_after: filter.due_after,
        due_before: filter.due_before,
    };
    let filter = list::filter(app, namespace, wanted, Some(among)).await;
    let Some(filter) = filter.map_err(|f| f.under("filter"))? else {
        return Ok((Vec::new(), false));
    };
    let most = app.limits().many;
    let page = app.node.query(move |q| q.list(&filter, None, most)).await?;
    let ids = page.tasks.iter().filter(|t| !t.cancel_requested).map(|t| t.id).collect();
    Ok((ids, page.next.is_some()))
}
