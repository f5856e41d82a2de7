//! One server process, which ends with its owner whatever happens to the owner.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server has to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the server beside a reader of a pipe whose other end this program holds. When this program is gone, also by
/// SIGKILL, the pipe closes and the reader ends the server. SIGKILL, because the data are disposable and a server that
/// a test has stopped heeds nothing else. The reader goes when the server does, so that it never ends a stranger that
/// got the server's id.
const WATCHED: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
trap '' HUP INT TERM
(read -r _ <&3; kill -9 "$server") &
reader=$!
wait "$server"
status=$?
kill -9 "$reader" 2>/dev/null
exit "$status"
"#;

/// Whether a server ends with this program or stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    WithUs,
    ByHand,
}

/// A server that is ended when this is dropped, unless it was left running.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    program: String,
    pub(super) port: u16,
    log: PathBuf,
    left_running: bool,
}

/// What tells a server from any other process, also to a later run of this program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) id: u32,
    pub(super) port: u16,
    pub(super) program: String,
}

impl Process {
    /// Starts `program`, which will listen on `port`, with what is known of it in `folder`.
    pub(super) fn start(
        lifetime: Lifetime,
        program: &Path,
        arguments: &[String],
        port: u16,
        folder: &Path,
    ) -> Result<Self, String> {
        let failed = |e: io::Error| format!("{}: {e}", program.display());
        let log = folder.join("log");
        let out = File::create(&log).map_err(failed)?;
        let mut command = match lifetime {
            Lifetime::WithUs => {
                let mut shell = Command::new("sh");
                shell.args(["-c", WATCHED, "watch"]).arg(program).stdin(Stdio::piped());
                shell
            }
            Lifetime::ByHand => {
                let mut server = Command::new(program);
                // A group of its own: Ctrl-C or the end of the terminal does not reach it.
                server.process_group(0).stdin(Stdio::null());
                server
            }
        };
        command.args(arguments).stderr(out.try_clone().map_err(failed)?).stdout(out);
        let child = command.spawn().map_err(failed)?;
        let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let process = Self { child, program, port, log, left_running: false };
        if lifetime == Lifetime::ByHand {
            // Before anything is waited for, so that `down` finds the server also when `up` is broken off.
            process.identity().write(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        Ok(process)
    }

    /// Returns when `ready` holds; when the server has ended or it takes too long, the end of its log is the error.
    pub(super) fn wait_until(&mut self, ready: impl Fn(u16) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.complaint(&format!("ended by itself ({status})")));
            }
            if ready(self.port) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(self.complaint(&format!("did not answer within {} s", PATIENCE.as_secs())));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(super) fn leave_running(mut self) {
        self.left_running = true;
    }

    /// Only a server that is to be left running is itself the child.
    fn identity(&self) -> Identity {
        Identity { id: self.child.id(), port: self.port, program: self.program.clone() }
    }

    fn complaint(&self, what: &str) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(15)..].join("\n  ");
        format!("{} on port {} {what}\n  the end of its log:\n  {tail}", self.program, self.port)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.left_running {
            return;
        }
        // With a pipe, closing it ends the server; without one, the child is the server.
        match self.child.stdin.take() {
            Some(pipe) => drop(pipe),
            None => drop(self.child.kill()),
        }
        drop(self.child.wait());
    }
}

impl Identity {
    fn write(&self, folder: &Path) -> io::Result<()> {
        fs::write(folder.join("process"), format!("{} {} {}\n", self.id, self.port, self.program))
    }

    /// None for a folder in which no server was started to be left running.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join("process")).ok()?;
        let (id, rest) = text.trim_end().split_once(' ')?;
        let (port, program) = rest.split_once(' ')?;
        Some(Self { id: id.parse().ok()?, port: port.parse().ok()?, program: program.to_owned() })
    }
}
