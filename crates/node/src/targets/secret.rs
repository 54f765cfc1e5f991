//! Secrets by reference: a header value `secret:NAME` stands for a value that only the node knows.
//!
//! What always holds: a value is never part of an error or of debug output, and a name cannot
//! lead out of the folder of secrets. What is deliberately absent: storing or changing secrets,
//! caching (a changed file counts from the next attempt on).

use std::env::VarError;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// The beginning of a value that refers to a secret.
pub const PREFIX: &str = "secret:";

/// Longest secret, in bytes.
pub const SECRET_MAX_BYTES: usize = 64 * 1024;

/// Longest name of a secret, in bytes.
pub const NAME_MAX_BYTES: usize = 200;

/// Where secrets come from.
pub trait Secrets: Send + Sync {
    /// The secret called `name`. Called while an attempt starts, so it must answer promptly.
    ///
    /// # Errors
    /// When there is no such secret, its name is not allowed, or it cannot be read.
    fn secret(&self, name: &str) -> Result<SecretValue, SecretError>;
}

/// A secret. Debug output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(String);

impl SecretValue {
    /// Takes `value` as a secret.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

/// Why there is no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretError {
    /// The name has other characters than `A-Z a-z 0-9 _ - .`, begins with `.`, is empty or longer
    /// than [`NAME_MAX_BYTES`].
    BadName,
    /// Neither the environment nor the folder has it.
    Unknown {
        /// The name that was asked for.
        name: String,
    },
    /// It is there but cannot be used.
    Unreadable {
        /// The name that was asked for.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl SecretError {
    /// Whether there is no secret of that name.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // What follows `secret:` may be a value put there by mistake, so it is not repeated.
            Self::BadName => f.write_str(
                "a secret's name has 1 to 200 of the characters A-Z a-z 0-9 _ - . and does not begin with a dot",
            ),
            Self::Unknown { name } => write!(
                f,
                "no secret {name}: set TOURBILLON_SECRET_{name} or create the file secrets/{name} in the data folder"
            ),
            Self::Unreadable { name, reason } => write!(f, "secret {name}: {reason}"),
        }
    }
}

impl std::error::Error for SecretError {}

/// The node's secrets: the environment variable `TOURBILLON_SECRET_NAME`, else the file `NAME` in
/// a folder. Of a file one line break at the end is not part of the secret.
#[derive(Clone, Debug)]
pub struct NodeSecrets {
    folder: Option<PathBuf>,
    env: fn(&str) -> Result<String, VarError>,
}

impl NodeSecrets {
    /// Secrets from the environment and, when given, the files in `folder`, which need not exist.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, env: |name| std::env::var(name) }
    }
}

impl Secrets for NodeSecrets {
    fn secret(&self, name: &str) -> Result<SecretValue, SecretError> {
        check_name(name)?;
        let unreadable = |reason: &str| SecretError::Unreadable {
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        match (self.env)(&format!("TOURBILLON_SECRET_{name}")) {
            Ok(value) => return Ok(SecretValue(value)),
            Err(VarError::NotUnicode(_)) => {
                return Err(unreadable("the environment variable is not UTF-8"));
            }
            Err(VarError::NotPresent) => {}
        }
        let unknown = || SecretError::Unknown { name: name.to_owned() };
        let path = self.folder.as_ref().ok_or_else(unknown)?.join(name);
        // Opening a pipe would wait for its writer, so this is asked first.
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_file() => {}
            Ok(_) => return Err(unreadable("it is not a regular file")),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(unknown()),
            Err(e) => return Err(unreadable(&e.to_string())),
        }
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(SECRET_MAX_BYTES as u64 + 3).read_to_end(&mut bytes))
            .map_err(|e| unreadable(&e.to_string()))?;
        let mut value = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8"))?;
        if value.ends_with('\n') {
            value.pop();
            if value.ends_with('\r') {
                value.pop();
            }
        }
        if value.len() > SECRET_MAX_BYTES {
            return Err(unreadable("it is longer than 64 KiB"));
        }
        Ok(SecretValue(value))
    }
}

fn check_name(name: &str) -> Result<(), SecretError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    if (1..=NAME_MAX_BYTES).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(allowed)
    {
        Ok(())
    } else {
        Err(SecretError::BadName)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_their_last_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = NodeSecrets::new(Some(folder.path().to_owned()));
        for (file, expected) in
            [("a b", "a b"), ("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("", "")]
        {
            std::fs::write(folder.path().join("s.1-x_Y"), file).unwrap();
            assert_eq!(secrets.secret("s.1-x_Y").unwrap().reveal(), expected);
        }
    }

    #[test]
    fn the_environment_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("both"), "from the file").unwrap();
        std::fs::write(folder.path().join("file"), "from the file").unwrap();
        let secrets = NodeSecrets {
            folder: Some(folder.path().to_owned()),
            env: |name| match name {
                "TOURBILLON_SECRET_both" => Ok("from the environment".to_owned()),
                "TOURBILLON_SECRET_odd" => Err(VarError::NotUnicode("x".into())),
                _ => Err(VarError::NotPresent),
            },
        };
        let both = secrets.secret("both").unwrap();
        assert_eq!(both.reveal(), "from the environment");
        assert_eq!(secrets.secret("file").unwrap().reveal(), "from the file");
        let error = secrets.secret("odd").unwrap_err();
        assert!(matches!(error, SecretError::Unreadable { .. }), "{error:?}");
    }

    #[test]
    fn unknown_names_and_bad_names_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("secrets")).unwrap();
        std::fs::write(folder.path().join("token"), "hush").unwrap();
        let secrets = NodeSecrets::new(Some(folder.path().join("secrets")));
        let unknown = secrets.secret("nowhere").unwrap_err();
        assert!(unknown.is_unknown());
        assert!(unknown.to_string().contains("secrets/nowhere"), "{unknown}");
        let long = "x".repeat(201);
        for name in ["", ".", "..", "../token", "a/b", ".hidden", "a\0b", "é", &long] {
            assert_eq!(secrets.secret(name).unwrap_err(), SecretError::BadName, "{name:?}");
        }
        assert!(NodeSecrets::new(None).secret("token").unwrap_err().is_unknown());
    }

    #[test]
    fn what_cannot_be_a_secret() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = NodeSecrets::new(Some(folder.path().to_owned()));
        std::fs::create_dir(folder.path().join("dir")).unwrap();
        std::fs::write(folder.path().join("binary"), b"\xff\xfe").unwrap();
        std::fs::write(folder.path().join("huge"), vec![b'x'; SECRET_MAX_BYTES + 10]).unwrap();
        for name in ["dir", "binary", "huge"] {
            let error = secrets.secret(name).unwrap_err();
            assert!(matches!(error, SecretError::Unreadable { .. }), "{error:?}");
        }
        std::fs::write(folder.path().join("full"), vec![b'x'; SECRET_MAX_BYTES]).unwrap();
        assert_eq!(secrets.secret("full").unwrap().reveal().len(), SECRET_MAX_BYTES);
    }

    #[test]
    fn debug_output_does_not_show_it() {
        assert_eq!(format!("{:?}", SecretValue::new("hush")), "SecretValue(…)");
    }
}
