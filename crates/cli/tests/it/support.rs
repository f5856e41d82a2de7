//! A directory of locks, programs that run, and waiting for what they do.

use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{Read, Write};
use std::iter;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Output, Stdio};
use std::sync::Once;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use leasehold_testkit::{Deadline, KilledOnDrop, PATIENCE, eventually_some};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::signal::unix::{self, SignalKind};

/// A store of its own for one test.
pub(crate) struct Place {
    backend: String,
    /// Deleted at the end.
    _dir: Option<TempDir>,
}

impl Place {
    /// Locks in a new directory, in which nothing has been locked yet.
    pub(crate) fn file() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let locks = dir.path().join("locks");
        DirBuilder::new().recursive(true).mode(0o700).create(locks.join("leasehold")).unwrap();
        Self { backend: format!("file:{}", locks.display()), _dir: Some(dir) }
    }

    /// Locks wherever the URL says.
    pub(crate) fn at(backend: impl Into<String>) -> Self {
        Self { backend: backend.into(), _dir: None }
    }

    pub(crate) fn backend(&self) -> &str {
        &self.backend
    }

    /// The program with these arguments, on this store.
    pub(crate) fn leasehold(&self, args: &[&str]) -> Command {
        let mut command = leasehold(args);
        command.env("LEASEHOLD_BACKEND", &self.backend);
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.leasehold(args).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs the program to its end and answers its exit code.
    pub(crate) fn code(&self, args: &[&str]) -> i32 {
        let output = self.run(args);
        output.status.code().unwrap_or_else(|| panic!("{args:?} ended by a signal: {output:?}"))
    }

    /// Starts a program that holds `key` until its input is closed. When this returns, it does.
    pub(crate) fn hold(&self, key: &str) -> Running {
        self.hold_with(&[], key)
    }

    pub(crate) fn hold_with(&self, options: &[&str], key: &str) -> Running {
        let command = ["--", "sh", "-c", "echo ready; exec cat"];
        let mut holder = Running::start(&mut self.leasehold(&[&["run"], options, &[key], &command].concat()));
        holder.expect_line("ready");
        holder
    }

    /// Waits until nobody holds the key.
    pub(crate) fn wait_until_free(&self, key: &str) {
        eventually_some(&format!("{key} is free"), || (self.code(&["inspect", "-e", key]) == 1).then_some(()));
    }
}

/// Where a shell finds the program, before all else.
pub(crate) fn path() -> OsString {
    let program = Path::new(env!("CARGO_BIN_EXE_leasehold")).parent().unwrap().to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    env::join_paths(iter::once(program).chain(env::split_paths(&others))).unwrap()
}

/// What the tests' own parent has them ignore (`nohup`, a script's `&`), the programs that they start would ignore, too:
/// a signal that is caught here is not ignored there.
pub(crate) fn signals_as_usual() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return };
        let ignored =
            status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2] {
            if ignored.is_some_and(|ignored| ignored & (1 << (signal.as_raw() - 1)) != 0) {
                drop(unix::signal(SignalKind::from_raw(signal.as_raw())).unwrap());
            }
        }
    });
}

/// The program with these arguments, and with nothing in its environment that a test did not put there.
pub(crate) fn leasehold(args: &[&str]) -> Command {
    signals_as_usual();
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(args).env_remove("LEASEHOLD_BACKEND").env_remove("LEASEHOLD_PASSWORD").env_remove("RUST_LOG");
    command
}

/// A program that runs, with pipes to all its ends. It is killed if the test does not wait for it.
pub(crate) struct Running {
    child: KilledOnDrop,
    input: Option<ChildStdin>,
    output: Stream,
    errors: Stream,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        signals_as_usual();
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = KilledOnDrop::spawn(command).unwrap();
        let input = child.stdin.take();
        let output = Stream::of(child.stdout.take().unwrap());
        let errors = Stream::of(child.stderr.take().unwrap());
        Self { child, input, output, errors }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn type_in(&mut self, text: &[u8]) {
        self.input.as_mut().unwrap().write_all(text).unwrap();
    }

    /// The next line of its standard output; what there is, if it ends before that.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        self.output.until("\n").trim_end().to_owned()
    }

    #[track_caller]
    pub(crate) fn expect_line(&mut self, expected: &str) {
        let line = self.line();
        assert_eq!(line, expected, "it says: {}", self.errors.so_far());
    }

    /// Its standard output up to and with this.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> String {
        let seen = self.output.until(text);
        assert!(seen.ends_with(text), "no {text:?} came: {seen}");
        seen
    }

    /// The next event of `--json`; what comes before it is passed over.
    #[track_caller]
    pub(crate) fn event(&mut self, name: &str) -> Value {
        loop {
            let line = self.errors.until("\n");
            assert!(!line.is_empty(), "no event {name:?} came");
            let event: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not an event: {line}"));
            if event["event"] == name {
                return event;
            }
        }
    }

    /// Lets it end by itself: closes its input.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for its end, and for the end of all that has its standard output.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        self.close_input();
        self.ended()
    }

    /// The same for one that must end although its input is open.
    #[track_caller]
    pub(crate) fn end_by_itself(mut self) -> Ended {
        self.ended()
    }

    #[track_caller]
    fn ended(&mut self) -> Ended {
        let output = self.output.rest();
        let errors = self.errors.rest();
        Ended { code: self.child.wait().unwrap().code(), output, errors }
    }
}

/// What comes out of a program, with a limit on the patience.
struct Stream {
    pieces: Receiver<Vec<u8>>,
    read: Vec<u8>,
}

impl Stream {
    fn of(mut source: impl Read + Send + 'static) -> Self {
        let (sender, pieces) = mpsc::channel();
        // It ends with the program.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = source.read(&mut buffer) {
                if sender.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { pieces, read: Vec::new() }
    }

    /// Takes everything up to and with `end`, or up to the end of the stream.
    #[track_caller]
    fn until(&mut self, end: &str) -> String {
        let deadline = Deadline::after(PATIENCE);
        loop {
            // One that goes on talking about other things is late, too.
            assert!(!deadline.is_over(), "no {end:?} came; so far: {}", text(&self.read));
            if let Some(at) = self.read.windows(end.len()).position(|window| window == end.as_bytes()) {
                return text(&self.read.drain(..at + end.len()).collect::<Vec<_>>());
            }
            if !self.more() {
                return text(&std::mem::take(&mut self.read));
            }
        }
    }

    #[track_caller]
    fn rest(&mut self) -> String {
        while self.more() {}
        text(&std::mem::take(&mut self.read))
    }

    fn so_far(&mut self) -> String {
        self.read.extend(self.pieces.try_iter().flatten());
        text(&self.read)
    }

    /// False at the end of the stream.
    #[track_caller]
    fn more(&mut self) -> bool {
        match self.pieces.recv_timeout(PATIENCE) {
            Ok(piece) => self.read.extend(piece),
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => panic!("it says no more; so far: {}", text(&self.read)),
        }
        true
    }
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
