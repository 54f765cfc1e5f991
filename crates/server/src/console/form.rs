//! Forms that the console's own pages send.
//!
//! A browser says where a form comes from. What does not come from a page of this server is
//! refused, also when the browser is silent about it, for a form needs no permission to be sent
//! from anywhere.

use axum::extract::{FromRequest, Request};
use http::{HeaderMap, header};
use tourbillon_wire::code;
use url::form_urlencoded;

use crate::body::read;
use crate::failure::{Failure, Result};
use crate::state::App;

/// The fields of a form.
pub(crate) struct Form(Vec<(String, String)>);

impl FromRequest<App> for Form {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Form> {
        let headers = request.headers();
        if !from_here(headers) {
            return Err(Failure::new(403, code::ORIGIN_NOT_ALLOWED)
                .detail("the form does not come from a page of this server")
                .expected("the `Origin` that browsers send along with forms"));
        }
        let body = read(request.into_body(), app).await?;
        Ok(Form(form_urlencoded::parse(&body).into_owned().collect()))
    }
}

/// Whether the browser says that the form comes from this server. The doors have seen to it that
/// an `Origin`, when there is one, is this server's.
fn from_here(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").and_then(|v| v.to_str().ok());
    headers.contains_key(header::ORIGIN) || matches!(site, Some("same-origin"))
}

impl Form {
    /// A field; `None` also when it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let found = self.0.iter().find(|(n, _)| n == name);
        found.map(|(_, v)| v.trim().to_owned()).filter(|v| !v.is_empty())
    }
}
