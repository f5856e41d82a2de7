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
    use leasehold_chaos::history::{Log, Mode};

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_client_holds_what_it_has_looked_at_for_a_while_and_has_not_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::open(folder.path(), 1).unwrap();
        let history = folder.path().join("client-1.jsonl");
        let write = |at: u64, op, event| log.write(at * MS, 0, op, event).unwrap();
        assert!(!holds(&history), "nothing is written");
        for op in 0..300 {
            write(op * 100, op, Event::Granted { token: op, lease_ms: 1500 });
            write(op * 100 + 5, op, Event::Held {});
            assert!(!holds(&history), "for a moment");
            write(op * 100 + 90, op, Event::Held {});
            assert!(holds(&history), "op {op}");
            write(op * 100 + 95, op, Event::ReleaseCalled {});
            assert!(!holds(&history), "given back");
        }
        write(40_000, 300, Event::Granted { token: 300, lease_ms: 1500 });
        write(41_000, 300, Event::Held {});
        let event = Event::Called { key: "k".into(), mode: Mode::Shared, wait_ms: None, session: None, attach: false };
        write(41_010, 301, event);
        assert!(holds(&history));
        write(41_020, 300, Event::Lost { reason: "expired".into(), deadline_overdue_ms: None, resumed: false });
        assert!(!holds(&history), "lost");
    }
}
