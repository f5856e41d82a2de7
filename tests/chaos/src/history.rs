//! What clients and the nemesis saw, as lines of JSON: each process appends to a file of its own.
//!
//! A line is one `write`, so a process that is killed loses its last line at most.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use leasehold_core::Clock;
use leasehold_core::clock::Moment;
use serde::{Deserialize, Serialize};

use crate::register::Answer;

/// The `client` of what the nemesis writes.
pub const NEMESIS: u32 = u32::MAX;

/// The error of [`Event::Refused`] and [`Event::ReleaseFailed`] whose outcome the client does not know.
pub const UNKNOWN: &str = "indeterminate";

/// One line: what happened, when, and to whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Nanoseconds on the machine's clock, the same for all processes of the machine ([`now`]).
    pub at: u64,
    /// The process, or [`NEMESIS`].
    pub client: u32,
    pub task: u32,
    /// From the call of one acquire, to the release. Unique within the client.
    pub op: u64,
    pub event: Event,
}

/// What happened. The moment of a call is read before it, and the moment of an answer after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// A key is asked for.
    Called {
        key: String,
        mode: Mode,
        /// The longest wait, in milliseconds. `None`: without a limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
        /// The session that takes part in it, unique within the client. Its levels on one key share a lease and a token.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<u32>,
        /// A lock that another op detached is attached: it keeps its token.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        attach: bool,
    },
    /// The call returned a guard.
    Granted {
        token: u64,
        /// The lease that was asked for, in milliseconds.
        lease_ms: u64,
    },
    /// The call returned no guard.
    Refused {
        /// `busy`, `timed_out`, `cancelled`, or the kind of the error; [`UNKNOWN`] where the store may have granted it.
        error: String,
    },
    /// The guard said that it is held. The moment was read *before* it was asked, so that a process that is stopped in
    /// between claims nothing; and it is asked once more before a release is called.
    Held {},
    /// The guard is given to a release, or dropped.
    ReleaseCalled {},
    /// The release returned.
    Released {
        /// True: it said that the lock was held until then. False: the guard had been lost before.
        ok: bool,
    },
    /// The release returned an error.
    ReleaseFailed {
        /// As in [`Refused`](Self::Refused).
        error: String,
    },
    /// The client noticed that the guard is lost: it never says again that it is held.
    Lost {
        reason: String,
        /// How long after the deadline, in milliseconds; `None` where the loss came before the deadline.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline_overdue_ms: Option<u64>,
        /// The process was stopped or starved over the deadline: how late it noticed is then no fault.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        resumed: bool,
    },
    /// The guard became a text that another op may attach.
    Detached {},
    /// A request is sent to a register.
    Asked {
        register: String,
        /// The token that goes with it: the register refuses smaller ones from then on, so that no write with one can come
        /// between a read and a write that follows from it. `None` for a register without a fence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
        /// What is written: no value is written twice to one register. `None`: it is a read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writes: Option<u64>,
    },
    /// What the register answered, or that no answer came.
    Answered { answer: Answer },
    /// The nemesis began or ended a fault.
    Fault {
        /// Its name, as in the table of what each fault exempts.
        fault: String,
        target: Target,
        phase: Phase,
        /// How often the fault was seen to have an effect by now: 0 at its beginning, and larger at its end.
        #[serde(default)]
        proved: u64,
    },
}

/// As [`leasehold_core::Mode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// No other grant of the key exists.
    #[default]
    Exclusive,
    /// Only other shared grants exist beside it.
    Shared,
}

/// What a fault hits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Client(u32),
    /// A server, by its name in the run.
    Server(String),
    /// The way between clients and a server, by its name in the run.
    Link(String),
    /// A key, such as one that is released by force.
    Key(String),
}

/// The ends of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It begins: the moment is read before the first step of it.
    Began,
    /// It is over: the moment is read after the last step of it.
    Ended,
}

/// The moment now: nanoseconds on the clock that leases are counted on, which is the same in every process.
pub fn now() -> u64 {
    let since = Clock::system().now().since(Moment::default());
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The file that a process appends to.
#[derive(Debug)]
pub struct Log {
    file: File,
    client: u32,
}

impl Log {
    /// Appends to the file of this client in a folder.
    pub fn open(folder: &Path, client: u32) -> io::Result<Self> {
        let name = if client == NEMESIS { "nemesis.jsonl".to_owned() } else { format!("client-{client}.jsonl") };
        let file = OpenOptions::new().create(true).append(true).open(folder.join(name))?;
        Ok(Self { file, client })
    }

    /// Appends one line with one `write`. Lines of several tasks do not mix.
    pub fn write(&self, at: u64, task: u32, op: u64, event: Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Record { at, client: self.client, task, op, event })?;
        line.push(b'\n');
        (&self.file).write_all(&line)
    }
}

/// A record, and where it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The index of the file in [`History::files`].
    pub file: usize,
    /// The number of the line, from 1.
    pub number: usize,
    pub record: Record,
}

/// All that the processes of a run wrote down, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Where it was read.
    pub files: Vec<PathBuf>,
    /// Sorted by moment; the lines of one file with one moment stay in their order.
    pub lines: Vec<Line>,
}

impl History {
    /// Reads all `*.jsonl` of a folder. A last line without its end is skipped: its writer was killed.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
        let mut files = entries.collect::<io::Result<Vec<_>>>()?;
        files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        files.sort();
        let mut lines = Vec::new();
        for (file, path) in files.iter().enumerate() {
            let text = fs::read(path)?;
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            for (at, line) in text[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
                let number = at + 1;
                let record = serde_json::from_slice(line).map_err(|error| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("{}:{number}: {error}", path.display()))
                })?;
                lines.push(Line { file, number, record });
            }
        }
        Ok(Self::sorted(files, lines))
    }

    /// The history of these records, as if they had been read from one file.
    pub fn of(records: impl IntoIterator<Item = Record>) -> Self {
        let records = records.into_iter().enumerate();
        let lines = records.map(|(at, record)| Line { file: 0, number: at + 1, record });
        Self::sorted(vec![PathBuf::from("history")], lines.collect())
    }

    fn sorted(files: Vec<PathBuf>, mut lines: Vec<Line>) -> Self {
        lines.sort_by_key(|line| line.record.at);
        Self { files, lines }
    }

    /// `file:line`, as editors open it.
    pub fn place(&self, line: &Line) -> String {
        let file = self.files.get(line.file).map_or_else(String::new, |path| path.display().to_string());
        format!("{file}:{}", line.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_killed_process_is_skipped_and_a_damaged_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("client-1.jsonl");
        let key = "k\n\"é".to_owned();
        let called = Event::Called { key, mode: Mode::Shared, wait_ms: Some(5), session: None, attach: false };
        Log::open(folder.path(), 1).unwrap().write(1, 0, 1, called).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, [&whole[..], &whole[..cut]].concat()).unwrap();
            assert_eq!(History::read(folder.path()).unwrap().lines.len(), 1);
        }
        fs::write(&path, [b"{\"at\":1}\n", &whole[..]].concat()).unwrap();
        let error = History::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("client-1.jsonl:1"), "{error}");
    }
}
