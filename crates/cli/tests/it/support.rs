//! A directory of locks, programs that run, and waiting for what they do.

use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{BufReader, Read, Write};
use std::iter;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Once;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use leasehold_testkit::redis::Server;
use leasehold_testkit::{Deadline, KilledOnDrop, PATIENCE, eventually_some, needs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::signal::unix::{self, SignalKind};

/// The password of the tests. No output may have it.
const CANARY: &str = "c4n4ry";

/// The arguments of a line as a shell would find them. Of its quotes there are `'…'` around a whole argument.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split('\'').enumerate().flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    })
}

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
    pub(crate) fn leasehold(&self, args: &str) -> Command {
        let mut command = leasehold(args);
        command.env("LEASEHOLD_BACKEND", &self.backend);
        command
    }

    #[track_caller]
    pub(crate) fn start(&self, args: &str) -> Running {
        Running::start(&mut self.leasehold(args))
    }

    /// Runs the program to its end.
    #[track_caller]
    pub(crate) fn run(&self, args: &str) -> Ended {
        ended(&mut self.leasehold(args))
    }

    /// Runs the program to its end and answers its exit code.
    #[track_caller]
    pub(crate) fn code(&self, args: &str) -> i32 {
        let ended = self.run(args);
        ended.code.unwrap_or_else(|| panic!("it ended by a signal: {ended:?}"))
    }

    /// The object that a command prints.
    #[track_caller]
    pub(crate) fn json(&self, args: &str) -> Value {
        let ended = self.run(args);
        serde_json::from_str(&ended.output).unwrap_or_else(|_| panic!("no JSON: {ended:?}"))
    }

    #[track_caller]
    pub(crate) fn inspect(&self, key: &str) -> Value {
        self.json(&format!("inspect --json {key}"))
    }

    /// Whether a command gets the key at once.
    #[track_caller]
    pub(crate) fn is_free(&self, key: &str) -> bool {
        match self.code(&format!("run -n {key} -- true")) {
            0 => true,
            75 => false,
            code => panic!("neither free nor held: {code}"),
        }
    }

    /// Starts a program that holds `key` until its input is closed. When this returns, it does.
    #[track_caller]
    pub(crate) fn hold(&self, key: &str) -> Running {
        self.hold_with("", key)
    }

    #[track_caller]
    pub(crate) fn hold_with(&self, options: &str, key: &str) -> Running {
        let mut holder = self.leasehold("run");
        let mut holder = Running::start(holder.args(words(options)).args([key, "-c", "echo ready; exec cat"]));
        holder.expect_line("ready");
        holder
    }

    /// Waits until nobody holds the key.
    #[track_caller]
    pub(crate) fn wait_until_free(&self, key: &str) {
        eventually_some(&format!("{key} is free"), || self.is_free(key).then_some(()));
    }
}

/// A Redis of the test's own, and in it the store with this before its URL.
pub(crate) fn redis(prefix: &str) -> (Server, Place) {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = Place::at(format!("{prefix}{}", server.url()));
    (server, place)
}

/// Runs a future of the test's own.
pub(crate) fn wait_for<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
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
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2] {
            if ignored("self") & (1 << (signal.as_raw() - 1)) != 0 {
                drop(unix::signal(SignalKind::from_raw(signal.as_raw())).unwrap());
            }
        }
    });
}

/// The signals that a process ignores, as the kernel tells it. None where the system has no such file.
pub(crate) fn ignored(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap())
}

/// The program with these arguments, and with nothing in its environment that a test did not put there.
pub(crate) fn leasehold(args: &str) -> Command {
    signals_as_usual();
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(words(args)).env_remove("LEASEHOLD_BACKEND").env_remove("LEASEHOLD_PASSWORD").env_remove("RUST_LOG");
    command
}

/// Runs a command without input to its end.
#[track_caller]
pub(crate) fn ended(command: &mut Command) -> Ended {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Ended::of(format!("{command:?}"), output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// For the message of a test that fails.
    #[allow(dead_code, reason = "it is printed")]
    command: String,
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ended {
    #[track_caller]
    fn of(command: String, code: Option<i32>, output: String, errors: String) -> Self {
        let ended = Self { command, code, output, errors };
        assert!(!ended.output.contains(CANARY) && !ended.errors.contains(CANARY), "it shows a password: {ended:?}");
        ended
    }

    /// It ended with this code, and said all of these words, on whichever stream.
    #[track_caller]
    pub(crate) fn is(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        let unsaid = words.iter().find(|words| !self.output.contains(**words) && !self.errors.contains(**words));
        assert!(unsaid.is_none(), "{unsaid:?} is not in {self:?}");
        self
    }

    /// All that it printed.
    #[track_caller]
    pub(crate) fn prints(&self, output: &str) -> &Self {
        assert_eq!(self.output, output, "{self:?}");
        self
    }

    /// The first event of `--json`.
    #[track_caller]
    pub(crate) fn event(&self) -> Value {
        let first = self.errors.lines().next().unwrap_or_default();
        serde_json::from_str(first).unwrap_or_else(|_| panic!("no event: {self:?}"))
    }
}

/// A program that runs, with pipes to all its ends. It is killed if the test does not wait for it.
pub(crate) struct Running {
    command: String,
    child: KilledOnDrop,
    input: Option<ChildStdin>,
    output: Stream,
    errors: Stream,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        signals_as_usual();
        let mut child =
            KilledOnDrop::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped())).unwrap();
        let (input, output) = (child.stdin.take(), Stream::of(child.stdout.take().unwrap()));
        let errors = Stream::of(child.stderr.take().unwrap());
        Self { command: format!("{command:?}"), child, input, output, errors }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn type_in(&mut self, text: impl AsRef<[u8]>) {
        self.input.as_mut().unwrap().write_all(text.as_ref()).unwrap();
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
        self.end_by_itself()
    }

    /// The same for one that must end although its input is open.
    #[track_caller]
    pub(crate) fn end_by_itself(mut self) -> Ended {
        let (output, errors) = (self.output.rest(), self.errors.rest());
        Ended::of(self.command, self.child.wait().unwrap().code(), output, errors)
    }
}

/// What comes out of a program, byte by byte, with a limit on the patience.
struct Stream(Receiver<u8>);

impl Stream {
    fn of(source: impl Read + Send + 'static) -> Self {
        let (sender, bytes) = mpsc::channel();
        // It ends with the program.
        std::thread::spawn(move || {
            BufReader::new(source).bytes().map_while(Result::ok).try_for_each(|byte| sender.send(byte))
        });
        Self(bytes)
    }

    /// Takes everything up to and with `end`, or up to the end of the stream.
    #[track_caller]
    fn until(&self, end: &str) -> String {
        self.take(&format!("{end:?}"), |read| read.ends_with(end.as_bytes()))
    }

    #[track_caller]
    fn rest(&self) -> String {
        self.take("end", |_| false)
    }

    fn so_far(&self) -> String {
        text(&self.0.try_iter().collect::<Vec<_>>())
    }

    #[track_caller]
    fn take(&self, what: &str, is_all: impl Fn(&[u8]) -> bool) -> String {
        let (deadline, mut read) = (Deadline::after(PATIENCE), Vec::new());
        while !is_all(&read) {
            match self.0.recv_timeout(PATIENCE) {
                // One that goes on talking about other things is late, too.
                Ok(byte) if !deadline.is_over() => read.push(byte),
                Err(RecvTimeoutError::Disconnected) => break,
                _ => panic!("no {what} came; so far: {}", text(&read)),
            }
        }
        text(&read)
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
