//! What clients and the nemesis saw, as lines of JSON: each process appends to a file of its own.
//!
//! A line is one `write`, so a process that is killed loses its last line at most.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use leasehold_core::Clock;
use leasehold_core::clock::Moment;
use serde::{Deserialize, Serialize};

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
    /// The task in it.
    pub task: u32,
    /// From the call of one acquire, to the release. Unique within the client.
    pub op: u64,
    /// What happened.
    pub event: Event,
}

/// What happened. The moment of a call is read before it, and the moment of an answer after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// A key is asked for.
    Called {
        /// The key.
        key: String,
        /// The mode.
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
        /// Its token.
        token: u64,
        /// The lease that was asked for, in milliseconds.
        lease_ms: u64,
    },
    /// The call returned no guard.
    Refused {
        /// `busy`, `timed_out`, `cancelled`, or the kind of the error in this spelling; [`UNKNOWN`] where the store may have
        /// granted it.
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
        /// The loss reason's name.
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
    /// A write is sent to a register.
    WriteCalled {
        /// The name of the register.
        register: String,
        /// The token that goes with it; `None` for a register without a fence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
        /// What is written: no value is written twice to one register.
        value: u64,
    },
    /// The register took the value.
    WriteAccepted {
        /// The value before; `None` where there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        previous: Option<u64>,
    },
    /// The register refused the token.
    WriteRefused {},
    /// No answer came: it may have been written, or may still be.
    WriteUnknown {},
    /// A register is read.
    ReadCalled {
        /// The name of the register.
        register: String,
        /// The token that goes with it: the register refuses smaller ones from then on, so that no write with one can come
        /// between this read and a write that follows from it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
    },
    /// What was read.
    Read {
        /// The value; `None` where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<u64>,
        /// The largest token that the register took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<u64>,
    },
    /// The register refused the token.
    ReadRefused {},
    /// No answer came to a read: it may have raised the fence, or may still do so.
    ReadUnknown {},
    /// The nemesis began or ended a fault.
    Fault {
        /// Its name, as in the table of what each fault exempts.
        fault: String,
        /// What was hit.
        target: Target,
        /// Which end of it this is.
        phase: Phase,
        /// How often the fault was seen to have an effect by now: 0 at its beginning, and larger at its end.
        #[serde(default)]
        proved: u64,
    },
}

/// As [`leasehold_core::Mode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// No other grant of the key exists.
    Exclusive,
    /// Only other shared grants exist beside it.
    Shared,
}

/// What a fault hits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A client process.
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
pub fn now(clock: &Clock) -> u64 {
    let since = clock.now().since(Moment::default());
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
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(folder: &Path, client: u32) -> io::Result<Self> {
        let name = if client == NEMESIS { "nemesis.jsonl".to_owned() } else { format!("client-{client}.jsonl") };
        let file = OpenOptions::new().create(true).append(true).open(folder.join(name))?;
        Ok(Self { file, client })
    }

    /// Appends one line with one `write`. Lines of several tasks do not mix.
    ///
    /// # Errors
    /// The file cannot be written.
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
    /// What it says.
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
    ///
    /// # Errors
    /// A file cannot be read, or a whole line is not a record.
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

    fn called() -> Event {
        Event::Called { key: "k\n\"é".into(), mode: Mode::Shared, wait_ms: Some(5), session: None, attach: false }
    }

    #[test]
    fn what_processes_wrote_is_read_in_the_order_of_time() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (Log::open(folder.path(), 1).unwrap(), Log::open(folder.path(), 2).unwrap());
        let nemesis = Log::open(folder.path(), NEMESIS).unwrap();
        one.write(30, 0, 7, Event::Held {}).unwrap();
        two.write(10, 4, 8, called()).unwrap();
        two.write(10, 4, 8, Event::Granted { token: u64::MAX, lease_ms: 9 }).unwrap();
        let stopped =
            Event::Fault { fault: "sigstop".into(), target: Target::Client(1), phase: Phase::Began, proved: 0 };
        nemesis.write(20, 0, 0, stopped.clone()).unwrap();

        let history = History::read(folder.path()).unwrap();
        let events: Vec<_> = history.lines.iter().map(|line| line.record.event.clone()).collect();
        assert_eq!(events, [called(), Event::Granted { token: u64::MAX, lease_ms: 9 }, stopped, Event::Held {}]);
        assert_eq!(history.place(&history.lines[1]), format!("{}:2", folder.path().join("client-2.jsonl").display()));
        assert_eq!((history.lines[2].record.client, history.lines[3].record.op), (NEMESIS, 7));
    }

    #[test]
    fn the_last_line_of_a_killed_process_is_skipped_and_a_damaged_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("client-1.jsonl");
        Log::open(folder.path(), 1).unwrap().write(1, 0, 1, called()).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, [&whole[..], &whole[..cut]].concat()).unwrap();
            assert_eq!(History::read(folder.path()).unwrap().lines.len(), 1);
        }
        fs::write(&path, [b"{\"at\":1}\n", &whole[..]].concat()).unwrap();
        let error = History::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("client-1.jsonl:1"), "{error}");
    }

    #[test]
    fn processes_share_the_clock() {
        let (one, other) = (now(&Clock::system()), now(&Clock::system()));
        assert!(one > 0 && other >= one);
    }

    #[test]
    fn a_line_is_short() {
        let record = Record { at: 1, client: 2, task: 3, op: 4, event: called() };
        let text = serde_json::to_string(&record).unwrap();
        let expected = r#"{"at":1,"client":2,"task":3,"op":4,"event":{"kind":"called","key":"k\n\"é","mode":"shared","wait_ms":5}}"#;
        assert_eq!(text, expected);
    }
}
