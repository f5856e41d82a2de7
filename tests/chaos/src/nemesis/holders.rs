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
    let record = |line| serde_json::from_slice(line).ok();
    read.map_or_else(|_| Vec::new(), |_| text.split(|byte| *byte == b'\n').filter_map(record).collect())
}
