//! What the tests of this crate share: a directory each, patience, and a second process.

use std::fs::{DirEntry, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use leasehold_file::core::GuardMode;
use leasehold_file::{
    Admin, Error, FencingToken, FileLocks, Guard, LockKey, LockOptions, LockerExt, RwLockerExt, Wait,
};
use leasehold_testkit::{KilledOnDrop, PATIENCE, shows_nothing, this_program};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Somebody who is neither us nor the super-user.
pub(crate) const STRANGER: u32 = 65_534;

pub(crate) fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

pub(crate) fn open(directory: &TempDir) -> FileLocks {
    FileLocks::open(directory.path()).expect("the directory is ours")
}

pub(crate) fn key(key: &str) -> LockKey {
    LockKey::new(key).expect("a key")
}

/// All that is below a folder, without going through links.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let with_its_own = |entry: DirEntry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let own = if is_folder { below(&entry.path()) } else { Vec::new() };
        own.into_iter().chain([entry.path()])
    };
    entries.flat_map(with_its_own).collect()
}

/// A runtime that rests while nothing is waited for.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

/// The errors of all that can be done with a key.
pub(crate) async fn refusals(locks: &FileLocks, name: &str) -> [Error; 4] {
    [
        locks.try_lock(name).await.map(drop).expect_err("a lock"),
        locks.try_read(name).await.map(drop).expect_err("a reader's lock"),
        locks.inspect(&key(name)).await.map(drop).expect_err("an answer"),
        locks.force_release(&key(name)).await.map(drop).expect_err("a release"),
    ]
}

/// What only the super-user may do: others have nothing to test with it.
pub(crate) fn may<T>(do_this: &str, done: std::io::Result<T>) -> T {
    done.unwrap_or_else(|error| shows_nothing(&format!("only the super-user may {do_this}: {error}")))
}

/// The files of the default namespace.
pub(crate) fn file(directory: &TempDir, name: &str) -> PathBuf {
    directory.path().join("leasehold").join(name)
}

/// Waits as long as anything can take, and looks after the grant often.
pub(crate) fn patient() -> LockOptions {
    LockOptions::new().ttl(Duration::from_millis(150)).wait(Wait::UpTo(PATIENCE))
}

pub(crate) fn token<M: GuardMode>(guard: &Guard<M>) -> u64 {
    guard.fencing_token().map(FencingToken::get).expect("tokens are claimed")
}

pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("in vain: {what}"))
}

/// A second process: this test program again, in the test `processes::helper`, in a role.
pub(crate) struct Helper {
    child: KilledOnDrop,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

const ROLE: &str = "LEASEHOLD_FILE_TEST_ROLE";
const DIRECTORY: &str = "LEASEHOLD_FILE_TEST_DIRECTORY";

/// Which role this process has, and in which directory.
pub(crate) fn role() -> Option<(String, PathBuf)> {
    Some((std::env::var(ROLE).ok()?, std::env::var_os(DIRECTORY)?.into()))
}

/// What a helper says to its parent. The harness prints on the same stream.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n:: {line}").and_then(|()| out.flush()).expect("the parent listens");
}

impl Helper {
    pub(crate) fn start(role: &str, directory: &Path) -> Self {
        Self::run(&mut this_program("processes::helper"), role, directory)
    }

    pub(crate) fn run(command: &mut Command, role: &str, directory: &Path) -> Self {
        let command = command.env(ROLE, role).env(DIRECTORY, directory);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = KilledOnDrop::spawn(command).expect("a helper starts");
        let input = child.stdin.take().expect("it was piped");
        let output = BufReader::new(child.stdout.take().expect("it was piped"));
        Self { child, input, output }
    }

    /// The next thing that it says; `None` when it ended.
    pub(crate) fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.output.read_line(&mut line).expect("the pipe works") > 0 {
            if let Some(said) = line.strip_prefix(":: ") {
                return Some(said.trim_end().to_owned());
            }
            line.clear();
        }
        None
    }

    pub(crate) fn ask_whether_it_holds(&mut self) -> String {
        writeln!(self.input).expect("the helper listens");
        self.hear().expect("the helper answers")
    }

    /// The token of what it holds by now.
    pub(crate) fn holds(&mut self) -> u64 {
        let said = self.hear().expect("the helper answers");
        said.strip_prefix("holds ").and_then(|token| token.parse().ok()).unwrap_or_else(|| panic!("it said {said:?}"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("it has an id");
        kill_process(pid, signal).expect("it is a child of ours");
    }

    /// Ends it without a chance to clean up, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.end();
    }
}
