//! Which clients hold something, as the last lines of their histories say.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use leasehold_chaos::history::{Event, Record};

/// So much of a history tells of every guard that is held: a client looks at each again and again.
const TAIL: u64 = 24 * 1024;

/// For how long a guard has been held that outlasts the next moment, in nanoseconds: most holds are shorter.
const LONG: u64 = 40_000_000;

/// The client with this history holds a lock for longer than a moment.
pub(super) fn holds(history: &Path) -> bool {
    let mut open: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for Record { at, op, event, .. } in tail(history) {
        match event {
            Event::Granted { .. } | Event::Held {} => open.entry(op).or_insert((at, at)).1 = at,
            Event::ReleaseCalled {} | Event::Released { .. } | Event::Lost { .. } | Event::Detached {} => {
                open.remove(&op);
            }
            _ => {}
        }
    }
    open.values().any(|(first, last)| last - first > LONG)
}

/// The last lines that are whole.
fn tail(history: &Path) -> Vec<Record> {
    let mut text = Vec::new();
    let read = File::open(history).and_then(|mut file| {
        let begin = file.metadata()?.len().saturating_sub(TAIL);
        file.seek(SeekFrom::Start(begin))?;
        file.read_to_end(&mut text)
    });
    read.map_or_else(|_| Vec::new(), |_| text.split(|byte| *byte == b'\n').filter_map(record).collect())
}

fn record(line: &[u8]) -> Option<Record> {
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use leasehold_chaos::history::Log;

    use super::*;

    #[test]
    fn a_client_holds_what_it_has_looked_at_for_a_while_and_has_not_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::open(folder.path(), 1).unwrap();
        let history = folder.path().join("client-1.jsonl");
        assert!(!holds(&history), "nothing is written");
        for op in 0..300 {
            let lost = Event::Lost { reason: "expired".into(), deadline_overdue_ms: None, resumed: false };
            let given_back = if op % 2 == 0 { Event::ReleaseCalled {} } else { lost };
            for (at, event, holds_it) in [
                (0, Event::Granted { token: op, lease_ms: 1500 }, false),
                (5, Event::Held {}, false),
                (90, Event::Held {}, true),
                (95, given_back, false),
            ] {
                log.write((op * 100 + at) * 1_000_000, 0, op, event).unwrap();
                assert_eq!(holds(&history), holds_it, "op {op} at {at}");
            }
        }
    }
}
