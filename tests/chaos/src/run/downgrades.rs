//! Writers that went on as readers: no other writer had the key in between.

use std::collections::{BTreeMap, HashMap, HashSet};

use leasehold_chaos::history::{Event, History, Mode, Record};

/// A client and its op.
type Id = (u32, u64);

/// A call, as the history tells of it.
struct Call<'h> {
    key: &'h str,
    mode: Mode,
    /// Of its grant.
    token: Option<u64>,
    /// The op of the same task whose release had not returned.
    before: Option<Id>,
}

/// Each downgrade in which another writer got a token between those of the writer and of the reader.
///
/// A downgrade is the one call that a task makes before a release of its own returns.
pub(super) fn let_a_writer_in(history: &History) -> Vec<String> {
    let (mut calls, mut releasing, mut released) = (HashMap::new(), HashMap::new(), HashSet::new());
    for line in &history.lines {
        let Record { client, task, op, ref event, .. } = line.record;
        let (id, task) = ((client, op), (client, task));
        match event {
            Event::Called { key, mode, .. } => {
                calls.insert(id, Call { key, mode: *mode, token: None, before: releasing.remove(&task) });
            }
            Event::Granted { token, .. } => drop(calls.get_mut(&id).map(|call| call.token.insert(*token))),
            Event::ReleaseCalled {} => drop(releasing.insert(task, id)),
            Event::Released { .. } => {
                releasing.remove(&task);
                released.insert(id);
            }
            _ => {}
        }
    }
    let of_writers = calls.iter().filter(|(_, call)| call.mode == Mode::Exclusive);
    let writers: BTreeMap<(&str, u64), Id> =
        of_writers.filter_map(|(id, call)| Some(((call.key, call.token?), *id))).collect();
    calls.values().filter_map(|reader| judge(reader, &calls, &released, &writers)).collect()
}

fn judge(
    reader: &Call<'_>,
    calls: &HashMap<Id, Call<'_>>,
    released: &HashSet<Id>,
    writers: &BTreeMap<(&str, u64), Id>,
) -> Option<String> {
    // A guard that is dropped has no release that returns.
    let id = reader.before.filter(|id| reader.mode == Mode::Shared && released.contains(id))?;
    let writer = calls.get(&id).filter(|writer| writer.key == reader.key)?;
    let (key, before, after) = (reader.key, writer.token?, reader.token?);
    let next = writers.range((key, before.saturating_add(1))..).next();
    let ((_, token), (other, _)) = next.filter(|((of, token), _)| *of == key && *token < after)?;
    Some(format!(
        "downgrade: client {} had {key} as a writer with token {before} and as a reader with {after}, and client {other} was a \
         writer in between with {token}",
        id.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(mode: Mode) -> Event {
        Event::Called { key: "k".into(), mode, wait_ms: None, session: None, attach: false }
    }

    fn granted(token: u64) -> Event {
        Event::Granted { token, lease_ms: 1500 }
    }

    /// A writer with token 10 of client 1, and what it does then; a writer of client 2 with this token.
    fn found(other: u64, then: impl IntoIterator<Item = (u64, Event)>) -> usize {
        let writer = [(1, called(Mode::Exclusive)), (1, granted(10)), (1, Event::ReleaseCalled {})];
        let of_one = writer.into_iter().chain(then).map(|(op, event)| (1, op, event));
        let of_other = [(2, 1, called(Mode::Exclusive)), (2, 1, granted(other))];
        let all = of_one.chain(of_other).enumerate();
        let records = all.map(|(at, (client, op, event))| Record { at: at as u64, client, task: 0, op, event });
        let_a_writer_in(&History::of(records)).len()
    }

    #[test]
    fn a_writer_between_the_tokens_of_a_downgrade_is_found_and_one_before_or_after_is_not() {
        let downgrade =
            || [(2, called(Mode::Shared)), (2, granted(13)), (1, Event::Released { ok: true }), (2, Event::Held {})];
        assert_eq!(found(11, downgrade()), 1);
        assert_eq!(found(12, downgrade()), 1);
        assert_eq!(found(9, downgrade()), 0);
        assert_eq!(found(14, downgrade()), 0);
    }

    #[test]
    fn who_released_or_dropped_and_comes_back_as_a_reader_let_writers_in_as_he_should() {
        let (reader, released) = (|| [(2, called(Mode::Shared)), (2, granted(13))], (1, Event::Released { ok: true }));
        assert_eq!(found(11, reader()), 0, "dropped");
        assert_eq!(found(11, [released].into_iter().chain(reader())), 0, "released");
    }
}
