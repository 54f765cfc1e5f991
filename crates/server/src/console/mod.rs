//! The web console: pages made on the server, one stylesheet, one small script, all embedded.
//!
//! What always holds: every text that comes from outside is escaped (maud does so); pages load
//! nothing from elsewhere and run no script but ours; what a button does goes through the same
//! node and the same doors as the API; everything works without the script and with a keyboard.
//! Deliberately absent: state of its own, and anything that the API could not do.

mod analysis;
mod calendars;
mod chart;
mod cluster;
mod context;
mod door;
mod form;
mod overview;
mod page;
mod queues;
mod rule;
mod schedules;
mod task;
mod tasks;
mod text;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::{HeaderValue, Method, header};
use tourbillon_wire::Problem;

use crate::failure::Failure;
use crate::state::App;

/// Bytes of a problem document that is shown as a page.
const PROBLEM_BYTES: usize = 64 << 10;

/// The pages and what they are made of.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(overview::show))
        .route("/wheel", get(cluster::wheel))
        .route("/tasks", get(tasks::show))
        .route("/dead-letters", get(tasks::dead_letters))
        .route("/bulk/cancel", post(tasks::cancel_all))
        .route("/bulk/retry", post(tasks::retry_all))
        .route("/tasks/{id}", get(task::show))
        .route("/tasks/{id}/{action}", post(task::act))
        .route("/schedules", get(schedules::list))
        .route("/schedules/{name}", get(schedules::show))
        .route("/schedules/{name}/{action}", post(schedules::act))
        .route("/calendars", get(calendars::list))
        .route("/calendars/{name}", get(calendars::show))
        .route("/calendars/{name}/{action}", post(calendars::act))
        .route("/queues", get(queues::list))
        .route("/queues/{name}", get(queues::show))
        .route("/queues/{name}/{action}", post(queues::act))
        .route("/nodes", get(cluster::nodes))
        .route("/analysis", get(analysis::show))
        .route("/login", get(door::ask).post(door::enter))
        .route("/logout", post(door::leave))
        .route("/language/{tag}", get(door::language))
        .layer(middleware::from_fn(problems_as_pages))
        .route("/assets/console.css", get(|| asset(CSS, "text/css; charset=utf-8")))
        .route("/assets/console.js", get(|| asset(JS, "text/javascript; charset=utf-8")))
        .route("/assets/icon.svg", get(|| asset(ICON, "image/svg+xml")))
}

static CSS: &str = include_str!("assets/console.css");
static JS: &str = include_str!("assets/console.js");
static ICON: &str = include_str!("assets/icon.svg");

async fn asset(text: &'static str, media: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, text).into_response()
}

/// What the doors answer a request that they refuse: to a browser a page, or the way to sign in.
pub(crate) fn refused(request: &Request, failure: Failure) -> Response {
    if !door::wants_page(request) {
        return failure.into_response();
    }
    if failure.status() == 401 && request.method() == Method::GET {
        let here = request.uri().path_and_query().map_or("/", |p| p.as_str());
        let query =
            url::form_urlencoded::Serializer::new(String::new()).append_pair("next", here).finish();
        return Redirect::to(&format!("/login?{query}")).into_response();
    }
    door::problem_page(context::language(request.headers()), failure.problem())
}

/// Shows a browser the problem documents of pages as pages.
async fn problems_as_pages(request: Request, next: Next) -> Response {
    let text = context::language(request.headers());
    let as_page = door::wants_page(&request);
    let response = next.run(request).await;
    let media = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !as_page || media != Some(Problem::MEDIA_TYPE.as_bytes()) {
        return response;
    }
    let status = response.status().as_u16();
    let read = to_bytes(response.into_body(), PROBLEM_BYTES).await;
    let problem = read.ok().and_then(|body| serde_json::from_slice::<Problem>(&body).ok());
    let problem = problem.unwrap_or_else(|| Problem::new(status, tourbillon_wire::code::INTERNAL));
    door::problem_page(text, &problem)
}
