//! Which path leads where, and the description of all of it.
//!
//! Paths and their descriptions are registered together, so the OpenAPI document cannot name a
//! path that is not there, nor miss one.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use http::header;
use tourbillon_wire::code;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{
    attempts, backfills, batch, calendars, cluster, events, health, many, metrics, output, prune,
    queues, schedules, stats, task, tasks,
};
use crate::console;
use crate::doors::Ends;
use crate::failure::Failure;
use crate::state::App;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tourbillon",
        description = "A durable task scheduler. Errors are RFC 9457 problem documents with a stable \
            `code`. Every path under /v1 takes `namespace`. Beyond loopback every call but /healthz \
            and /readyz needs the token; tasks that run commands need it always.",
    ),
    tags(
        (name = "tasks", description = "Pieces of work with a due time."),
        (name = "schedules", description = "Rules that say when, and what they create."),
        (name = "calendars", description = "Days on which schedules that name them do not run."),
        (name = "queues", description = "Lines of work with their limits."),
        (name = "workers", description = "Clients that pull tasks."),
        (name = "stats", description = "Counts, lateness and duration."),
        (name = "cluster", description = "Nodes and wheels."),
        (name = "events", description = "What happens, as it happens."),
        (name = "history", description = "What is over."),
        (name = "health", description = "For load balancers and supervisors."),
    ),
    security(("token" = []), ()),
)]
struct Description;

/// Every call with its description.
fn described() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(tasks::create, tasks::list))
        .routes(routes!(batch::create))
        .routes(routes!(many::cancel))
        .routes(routes!(many::retry))
        .routes(routes!(task::show, task::edit, task::cancel))
        .routes(routes!(task::run))
        .routes(routes!(task::retry))
        .routes(routes!(output::show))
        .routes(routes!(schedules::list))
        .routes(routes!(schedules::preview_unstored))
        .routes(routes!(schedules::show, schedules::put, schedules::remove))
        .routes(routes!(schedules::pause))
        .routes(routes!(schedules::resume))
        .routes(routes!(schedules::trigger))
        .routes(routes!(backfills::begin))
        .routes(routes!(backfills::end))
        .routes(routes!(schedules::preview))
        .routes(routes!(calendars::list))
        .routes(routes!(calendars::show, calendars::put, calendars::remove))
        .routes(routes!(queues::list))
        .routes(routes!(queues::show, queues::put))
        .routes(routes!(queues::pause))
        .routes(routes!(queues::resume))
        .routes(routes!(queues::purge))
        .routes(routes!(attempts::claim))
        .routes(routes!(attempts::complete))
        .routes(routes!(attempts::heartbeat))
        .routes(routes!(events::watch))
        .routes(routes!(stats::show))
        .routes(routes!(stats::over_time))
        .routes(routes!(cluster::wheel))
        .routes(routes!(cluster::nodes))
        .routes(routes!(cluster::workers))
        .routes(routes!(prune::prune))
        .routes(routes!(metrics::show))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(openapi))
}

/// The description of the whole API, as OpenAPI 3.1.
pub fn openapi_document() -> utoipa::openapi::OpenApi {
    let (_, mut document) = described().split_for_parts();
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    name_operations(&mut document);
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    document
        .components
        .get_or_insert_default()
        .add_security_scheme("token", SecurityScheme::Http(bearer));
    document
}

/// Gives every operation an id of its own, made of its method and path: `post_tasks_batch`.
fn name_operations(document: &mut utoipa::openapi::OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let words = path.split('/').filter(|s| !s.is_empty() && *s != "v1");
        let words: Vec<String> = words
            .map(|s| match s.strip_prefix('{').and_then(|s| s.strip_suffix('}')) {
                Some(name) => format!("by_{name}"),
                None => s.replace('.', "_"),
            })
            .collect();
        let methods = [
            ("get", &mut item.get),
            ("post", &mut item.post),
            ("put", &mut item.put),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
        ];
        for (method, operation) in methods {
            if let Some(operation) = operation {
                operation.operation_id = Some(format!("{method}_{}", words.join("_")));
            }
        }
    }
}

/// This description.
#[utoipa::path(
    get, path = "/openapi.json", tag = "stats",
    responses((status = 200, description = "OpenAPI 3.1.", body = String, content_type = "application/json")),
)]
async fn openapi(State(app): State<App>) -> Response {
    let text = app.openapi.get_or_init(|| openapi_document().to_json().unwrap_or_default().into());
    ([(header::CONTENT_TYPE, "application/json")], text.clone()).into_response()
}

/// The whole of it behind its doors.
pub(crate) fn router(app: App) -> Router {
    let (api, _) = described().split_for_parts();
    api.merge(console::routes())
        .fallback(nowhere)
        .method_not_allowed_fallback(other_method)
        // Bodies have their own bound, which answers a problem document.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(app.clone(), doors))
        .with_state(app)
}

async fn doors(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let ends = request.extensions().get::<Ends>().copied();
    let checked = app.doors.check(request.method(), request.uri(), request.headers(), ends);
    let response = match checked {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(failure) => console::refused(&request, failure),
    };
    app.count(response.status());
    response
}

async fn nowhere(request: Request) -> Response {
    Failure::not_found("path")
        .detail(format!(
            "there is no such path: {}",
            crate::convert::name::short(request.uri().path())
        ))
        .expected("a path of /openapi.json")
        .into_response()
}

async fn other_method(request: Request) -> Response {
    Failure::new(405, code::METHOD_NOT_ALLOWED)
        .detail(format!("{} is not a method of this path", request.method()))
        .expected("a method of /openapi.json")
        .into_response()
}
