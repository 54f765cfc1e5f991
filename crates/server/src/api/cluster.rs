//! `/v1/nodes`, `/v1/workers`, `/v1/wheel`: who is there, and what the wheel holds.

use axum::extract::State;
use axum::response::Response;
use tourbillon_wire as wire;
use tourbillon_wire::{NamespaceQuery, Problem, Wheels};

use super::reply;
use crate::body::Params;
use crate::failure::Result;
use crate::show;
use crate::state::App;

/// List the nodes that hold shards, and the one that answers.
#[utoipa::path(
    get, path = "/v1/nodes", tag = "cluster",
    params(NamespaceQuery),
    responses(
        (status = 200, description = "The nodes.", body = wire::Page<wire::Node>),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn nodes(
    State(app): State<App>,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    app.namespace(query.namespace)?;
    Ok(reply::ok(&wire::Page::whole(list(&app).await?)))
}

/// The nodes as shown.
pub(crate) async fn list(app: &App) -> Result<Vec<wire::Node>> {
    let leases = app.node.leases().await?;
    let advertise = app.options.advertise.as_deref();
    Ok(show::node::nodes(&app.node.status(), &leases, advertise, app.node.now()))
}

/// List the workers that called this node since it started.
#[utoipa::path(
    get, path = "/v1/workers", tag = "workers",
    params(NamespaceQuery),
    responses(
        (status = 200, description = "The workers, by name.", body = wire::Page<wire::Worker>),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn workers(
    State(app): State<App>,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    Ok(reply::ok(&wire::Page::whole(app.workers.list(&namespace, app.node.now()))))
}

/// Show what the wheels of this node hold.
#[utoipa::path(
    get, path = "/v1/wheel", tag = "cluster",
    params(NamespaceQuery),
    responses(
        (status = 200, description = "The wheels.", body = Wheels),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn wheel(
    State(app): State<App>,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    app.namespace(query.namespace)?;
    Ok(reply::ok(&wheels(&app).await?))
}

/// The wheels as shown.
pub(crate) async fn wheels(app: &App) -> Result<Wheels> {
    let view = app.node.wheel().await?;
    let options = app.node.options();
    Ok(show::wheel::wheels(&view, options.engine.max_resident, &options.name))
}
