//! The token of a data folder: made at the first start, readable by its owner alone.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::Context;

/// The token in `DATA/token`, made when there is none. `TOURBILLON_TOKEN` wins over it, so that
/// several servers can be given one.
pub(super) fn read_or_make(folder: &Path) -> anyhow::Result<String> {
    if let Some(token) = std::env::var("TOURBILLON_TOKEN").ok().filter(|t| !t.trim().is_empty()) {
        return Ok(token.trim().to_owned());
    }
    let path = folder.join("token");
    let context = || format!("the token file {}", path.display());
    match create(&path) {
        Ok(mut file) => {
            let random = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
            let token: String = random.iter().map(|u| u.simple().to_string()).collect();
            file.write_all(token.as_bytes()).with_context(context)?;
            file.sync_all().with_context(context)?;
            Ok(token)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let token = std::fs::read_to_string(&path).with_context(context)?.trim().to_owned();
            anyhow::ensure!(
                !token.is_empty(),
                "the token file {} is empty; delete it to have a new one made",
                path.display()
            );
            Ok(token)
        }
        Err(error) => Err(error).with_context(context),
    }
}

fn create(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}
