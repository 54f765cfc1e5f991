//! A name for a schedule that was given none.
//!
//! The same rule and task give the same name, so that the same command twice makes one schedule.

use tourbillon_wire::{NewSchedule, Target};

/// Characters of what runs that the name shows.
const SLUG_MAX: usize = 40;

/// A name from what runs and a hash of the whole document.
pub(super) fn derive(document: &NewSchedule) -> anyhow::Result<String> {
    let task = &document.task;
    let what = match (&task.kind, &task.target) {
        (Some(kind), _) => kind.as_str(),
        (None, Target::Command(command)) => {
            let program = command.argv.first().map_or("", String::as_str);
            program.rsplit('/').next().unwrap_or(program)
        }
        (None, Target::Http(http)) => {
            http.url.split_once("://").map_or(http.url.as_str(), |(_, rest)| rest)
        }
        (None, Target::Worker(_)) => "worker",
    };
    let hash = fnv1a(&serde_json::to_vec(document)?);
    Ok(format!("{}-{:08x}", slug(what), hash as u32 ^ (hash >> 32) as u32))
}

/// Letters and digits in lower case, anything else a single dash.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() == SLUG_MAX {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "schedule".to_owned() } else { slug.to_owned() }
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): stable from one version of the program to the next.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tourbillon_wire::{CommandTarget, Pairs, TaskTemplate};

    fn command(argv: &[&str]) -> NewSchedule {
        let argv = argv.iter().map(ToString::to_string).collect();
        NewSchedule::new(TaskTemplate::new(Target::Command(CommandTarget {
            argv,
            env: Pairs::new(),
            cwd: None,
            stdin: None,
        })))
    }

    #[test]
    fn the_same_document_has_the_same_name() {
        let one = derive(&command(&["/usr/bin/backup.sh", "-v"])).unwrap();
        assert_eq!(one, derive(&command(&["/usr/bin/backup.sh", "-v"])).unwrap());
        assert_ne!(one, derive(&command(&["/usr/bin/backup.sh"])).unwrap());
        assert!(one.starts_with("backup-sh-"), "{one}");
        assert_eq!(one.len(), "backup-sh-".len() + 8);
    }

    #[test]
    fn any_text_makes_a_name_without_a_slash() {
        assert_eq!(slug("a.example/close?x=1"), "a-example-close-x-1");
        assert_eq!(slug("日本"), "schedule");
        assert_eq!(slug("--"), "schedule");
        assert!(slug(&"ab/".repeat(100)).len() <= SLUG_MAX);
    }
}
