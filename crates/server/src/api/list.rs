//! What lists have in common: filters, limits and cursors.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tourbillon_store::queries::{Cursor, Page, TaskFilter};
use tourbillon_store::{Seq, State, Time};
use tourbillon_wire::{TaskState, Timestamp};

use crate::Limits;
use crate::convert::{number::within, time};
use crate::failure::{Failure, Result};
use crate::show::at;
use crate::state::App;

/// What a filter asks for, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) queue: Option<String>,
    pub(crate) state: Option<TaskState>,
    pub(crate) kind: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) schedule: Option<String>,
    pub(crate) due_after: Option<Timestamp>,
    pub(crate) due_before: Option<Timestamp>,
}

impl Wanted {
    /// Whether the list goes by due time.
    pub(crate) fn by_due(&self) -> bool {
        self.due_after.is_some()
            || self.due_before.is_some()
            || self.state == Some(TaskState::Ready)
    }
}

/// A filter as the store takes it; `None` when it names a queue, schedule or namespace that does
/// not exist, so that nothing matches. `among` are the states when the filter names none.
pub(crate) async fn filter(
    app: &App,
    namespace: &str,
    wanted: Wanted,
    among: Option<&[State]>,
) -> Result<Option<TaskFilter>> {
    let now = app.node.now();
    let due_after = wanted.due_after.map(|t| time::instant(t, "due_after")).transpose()?;
    let mut due_before = wanted.due_before.map(|t| time::instant(t, "due_before")).transpose()?;
    let by_due = due_after.is_some() || due_before.is_some();
    let states = match wanted.state {
        None => among.map(<[State]>::to_vec).unwrap_or_default(),
        Some(TaskState::Ready) => {
            let end = now.plus(1);
            due_before = Some(due_before.map_or(end, |t| t.min(end)));
            vec![State::Scheduled]
        }
        Some(TaskState::Scheduled) => vec![State::Scheduled],
        Some(TaskState::Running) => vec![State::Running],
        Some(TaskState::Succeeded) => vec![State::Succeeded],
        Some(TaskState::Failed) => vec![State::Failed],
        Some(TaskState::Cancelled) => vec![State::Cancelled],
        Some(TaskState::Expired) => vec![State::Expired],
        Some(TaskState::Skipped) => vec![State::Skipped],
    };
    if by_due && states != [State::Scheduled] {
        return Err(Failure::invalid(
            if due_after.is_some() { "due_after" } else { "due_before" },
            "a due range is for tasks that are scheduled",
            "`state` as `scheduled` or `ready` beside it",
        ));
    }
    let Some(id) = app.namespace_id(namespace).await? else { return Ok(None) };
    let queue = match wanted.queue {
        None => None,
        Some(name) => match app.node.queue(namespace, &name).await? {
            Some(view) => Some(view.record.id),
            None => return Ok(None),
        },
    };
    let schedule = match wanted.schedule {
        None => None,
        Some(name) => match app.node.query(move |q| q.schedule(id, &name)).await? {
            Some(record) => Some(record.uid),
            None => return Ok(None),
        },
    };
    Ok(Some(TaskFilter {
        namespace: id,
        queue,
        states,
        kind: wanted.kind,
        key: wanted.key,
        schedule,
        due_after,
        due_before,
    }))
}

/// How many items a page has.
pub(crate) fn limit(given: Option<u32>, limits: &Limits) -> Result<usize> {
    match given {
        None => Ok(limits.page_default),
        Some(n) => within(n as usize, "limit", 1, limits.page_max),
    }
}

/// A cursor as text. What it holds is nobody's business but ours.
pub(crate) fn cursor_text(cursor: Cursor) -> String {
    URL_SAFE_NO_PAD.encode(match cursor {
        Cursor::Seq(seq) => format!("s{:x}", seq.0),
        Cursor::Due(due, seq) => format!("d{:x}.{:x}", due.0, seq.0),
    })
}

/// A cursor that [`cursor_text`] wrote, of a list in the same order.
pub(crate) fn cursor(text: &str, by_due: bool) -> Result<Cursor> {
    let parsed = decode(text).filter(|c| matches!(c, Cursor::Due(..)) == by_due);
    parsed.ok_or_else(bad_cursor)
}

fn decode(text: &str) -> Option<Cursor> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    let number = |text: &str| i64::from_str_radix(text, 16).ok();
    match text.split_at_checked(1)? {
        ("s", seq) => Some(Cursor::Seq(Seq(number(seq)?))),
        ("d", rest) => {
            let (due, seq) = rest.split_once('.')?;
            // Written as two's complement, so read as such.
            let due = u64::from_str_radix(due, 16).ok()? as i64;
            Some(Cursor::Due(Time(due), Seq(number(seq)?)))
        }
        _ => None,
    }
}

/// A cursor of a list by name: the last name of the page before.
pub(crate) fn name_cursor(text: &str) -> Result<String> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| bad_cursor())?;
    String::from_utf8(bytes).map_err(|_| bad_cursor())
}

/// See [`name_cursor`].
pub(crate) fn name_cursor_text(name: &str) -> String {
    URL_SAFE_NO_PAD.encode(name)
}

fn bad_cursor() -> Failure {
    Failure::invalid(
        "cursor",
        "it is not a cursor of this list",
        "the `next_cursor` of the page before, with the same filter",
    )
}

/// How far a page that was cut short has looked, as far as it is known.
pub(crate) fn scanned_to(page: &Page) -> Option<Timestamp> {
    match page.next.filter(|_| page.cut)? {
        Cursor::Due(due, _) => Some(at(due)),
        Cursor::Seq(_) => page.tasks.last().map(|t| at(t.created_at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cursors_round_trip(due in any::<i64>(), seq in 0..i64::MAX) {
            for c in [Cursor::Seq(Seq(seq)), Cursor::Due(Time(due), Seq(seq))] {
                let by_due = matches!(c, Cursor::Due(..));
                prop_assert_eq!(cursor(&cursor_text(c), by_due).unwrap(), c);
                prop_assert!(cursor(&cursor_text(c), !by_due).is_err());
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,20}", bytes in any::<Vec<u8>>()) {
            let _ = cursor(&text, true);
            let _ = cursor(&URL_SAFE_NO_PAD.encode(bytes), false);
        }
    }
}
