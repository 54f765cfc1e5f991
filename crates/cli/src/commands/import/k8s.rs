//! `tourbillon import k8s FILE`: Kubernetes CronJob manifests as schedules.

use clap::Args;

use super::args::ImportArgs;
use crate::commands::App;
use crate::documents;
use crate::exit::Status;

/// Take over Kubernetes CronJobs (YAML, several documents a file): a schedule for each. Running it
/// again changes nothing.
#[derive(Debug, Args)]
pub(crate) struct K8s {
    /// The file; - for standard input, as in `kubectl get cronjobs -A -o yaml | tourbillon import k8s -`.
    file: String,
    #[command(flatten)]
    how: ImportArgs,
}

impl K8s {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let text = documents::read(&self.file)?;
        self.how.run(app, &self.file, |options| tourbillon_import::kubernetes(&text, options)).await
    }
}
