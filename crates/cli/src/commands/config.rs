//! `tourbillon config show`: what this command is set up with, and where that comes from.

use clap::Subcommand;
use serde::Serialize;

use super::App;
use crate::connect;
use crate::exit::Status;
use crate::output::{text, trimmed};

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show the settings in force and where they come from; never the token itself.
    Show,
}

#[derive(Serialize)]
struct Settings {
    version: &'static str,
    url: String,
    namespace: String,
    token: Option<String>,
    data: Option<String>,
}

impl Config {
    pub(crate) fn run(self, app: &App) -> anyhow::Result<Status> {
        let Config::Show = self;
        let settings = Settings {
            version: env!("CARGO_PKG_VERSION"),
            url: app.global.url.clone(),
            namespace: app.global.namespace.clone().unwrap_or_else(|| "default".to_owned()),
            token: connect::token(&app.global.url).map(|token| format!("from {}", token.source)),
            data: connect::data_folder().map(|folder| folder.display().to_string()),
        };
        let mut table = app.out.bare_table();
        table.add_row([text("version"), text(settings.version)]);
        table.add_row([text("url"), text(&settings.url)]);
        table.add_row([text("namespace"), text(&settings.namespace)]);
        table.add_row([text("token"), text(settings.token.as_deref().unwrap_or("none"))]);
        table.add_row([text("data folder"), text(settings.data.as_deref().unwrap_or("none"))]);
        app.out.either(&settings, trimmed(table))?;
        Ok(Status::Done)
    }
}
