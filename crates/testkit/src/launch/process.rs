use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::ports::free_port;
use super::settings::Settings;
use crate::waiting::Deadline;

/// How long a server has to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the server beside a reader of a pipe whose other end this process holds, and prints the server's process id.
///
/// When this process is gone, also by SIGKILL, the pipe closes: the reader ends the server, and its folder is removed, as is the
/// folder above it if nothing else is there. The word `keep` in the pipe ends the server and keeps the folder. The reader sends SIGKILL,
/// because the data are disposable and a server that a test has stopped heeds nothing else. The reader ends when the server does, so that it never ends
/// another process that got the server's id. What a killed `PostgreSQL` leaves in the system is removed by its number, which is
/// in its folder.
const WATCHED: &str = r#"
exec 3<&0
log=$1 folder=$2
shift 2
"$@" </dev/null 3<&- >>"$log" 2>&1 &
server=$!
echo "$server"
exec >/dev/null 2>&1
trap '' HUP INT TERM
(read -r word <&3; [ "$word" = keep ] || : >"$folder/abandoned"; kill -9 "$server") &
reader=$!
wait "$server"
status=$?
kill -9 "$reader"
[ -e "$folder/abandoned" ] && [ -e "$folder/data/postmaster.pid" ] && ipcrm -m "$(sed -n '7s/.* //p' "$folder/data/postmaster.pid")"
[ -e "$folder/abandoned" ] && rm -rf "$folder" && rmdir "${folder%/*}"
exit "$status"
"#;

/// What a server is started with: for the first time, or again on the data that it left.
#[derive(Clone, Debug)]
pub struct Launch {
    pub(super) program: PathBuf,
    pub(super) settings: Settings,
    /// Where it will listen.
    pub(super) port: u16,
    /// Where its files are; its output is in `log`.
    pub(super) folder: PathBuf,
    /// Whether it answers.
    pub(super) ready: fn(&Process) -> bool,
}

impl Launch {
    /// Starts the server, with these arguments behind its own, and waits until it answers.
    pub fn start(&self, more: &[String]) -> Result<Process, String> {
        let Self { program, settings, folder, .. } = self;
        let failed = |e: io::Error| format!("{}: {e}", program.display());
        let mut command = Command::new("sh");
        command.args(["-c", WATCHED, "watch"]).args([&folder.join("log"), folder]);
        // Variables by `env`: a library that is to be preloaded into the server is none of the shell's.
        command.arg("env").args(&settings.variables).arg(program).args(&settings.arguments).args(more);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed)?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(failed)?;
        }
        let id = line.trim().parse().map_err(|_| format!("{} does not start", program.display()))?;
        let mut process = Process { child, id, launch: self.clone() };
        process.wait_until(self.ready)?;
        Ok(process)
    }
}

/// A server process. Dropping it ends the server.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// 0 once it was killed: another process may have got its id.
    id: u32,
    launch: Launch,
}

impl Process {
    /// Returns when `ready` holds. The error of a server that ended, or that takes longer than half a minute, has the end of
    /// its log.
    pub(super) fn wait_until(&mut self, ready: impl Fn(&Self) -> bool) -> Result<(), String> {
        let deadline = Deadline::after(PATIENCE);
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.complaint(&format!("ended by itself ({status})")));
            }
            if ready(self) {
                // The answer of a stranger on that port, whose presence has just ended ours, is none.
                return if self.is_running() { Ok(()) } else { Err(self.complaint("ended by itself")) };
            }
            if deadline.is_over() {
                return Err(self.complaint(&format!("did not answer within {} s", PATIENCE.as_secs())));
            }
            pause(Duration::from_millis(5));
        }
    }

    /// By which it can be started again, once it has ended.
    pub fn launch(&self) -> Launch {
        self.launch.clone()
    }

    /// The port on which the server listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.launch.port
    }

    pub(super) fn folder(&self) -> &Path {
        &self.launch.folder
    }

    /// The process id of the server itself, or 0 once it was killed.
    pub fn pid(&self) -> u32 {
        self.id
    }

    /// Whether the server has not ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Stops the server with SIGSTOP: connections stay open, and nothing is answered. Returns when the server stands still.
    pub fn pause(&self) {
        stop(self.id);
        // Sessions of PostgreSQL are processes. One that stands still starts no more.
        for child in children(self.id) {
            stop(child);
        }
    }

    /// Lets a paused server go on, with all that was sent meanwhile.
    pub fn resume(&self) {
        for process in children(self.id).into_iter().chain([self.id]) {
            signal(process, Signal::CONT);
        }
    }

    /// Ends the server with SIGKILL, as a power cut would, and waits until it is gone. Its folder stays.
    pub fn kill(&mut self) {
        let sessions = if children(self.id).is_empty() { Vec::new() } else { self.kill_sessions() };
        if let Some(mut pipe) = self.child.stdin.take() {
            // It may have ended by itself.
            drop(pipe.write_all(b"keep\n"));
        }
        drop(self.child.wait());
        let deadline = Deadline::after(PATIENCE);
        // They use the data until they are gone.
        while !sessions.iter().all(|session| is_in_state(*session, &ENDED)) && !deadline.is_over() {
            pause(Duration::from_millis(1));
        }
        self.remove_segment();
        self.id = 0;
    }

    /// Ends the processes that this server started, none of which commits anything afterwards, and answers which they were.
    fn kill_sessions(&self) -> Vec<u32> {
        self.pause();
        let sessions = children(self.id);
        for session in &sessions {
            signal(*session, Signal::KILL);
        }
        sessions
    }

    /// Removes the segment of shared memory of a `PostgreSQL` that was killed: the system keeps it else.
    fn remove_segment(&self) {
        let lines = fs::read_to_string(self.folder().join("data/postmaster.pid")).unwrap_or_default();
        if let Some(segment) = lines.lines().nth(6).and_then(|line| line.split_whitespace().last()) {
            // It may be gone.
            drop(Command::new("ipcrm").args(["-m", segment]).output());
        }
    }

    fn complaint(&self, what: &str) -> String {
        let log = fs::read(self.folder().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(15)..].join("\n  ");
        let (program, port) = (self.launch.program.file_name().unwrap_or_default().display(), self.port());
        format!("{program} on port {port} {what}\n  the end of its log:\n  {tail}")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.id > 0 {
            self.kill();
        }
    }
}

/// Starts a server on a free port, and on another one if somebody took the port in between.
pub(super) fn on_a_free_port(start: impl Fn(u16) -> Result<Process, String>) -> Result<Process, String> {
    let mut tries = 10;
    loop {
        tries -= 1;
        match start(free_port()?) {
            Err(why) if tries > 0 && why.contains("Address already in use") => {}
            outcome => return outcome,
        }
    }
}

/// Stops a process, and returns when it stands still.
fn stop(process: u32) {
    signal(process, Signal::STOP);
    let deadline = Deadline::after(PATIENCE);
    // A signal is on its way for a moment, in which a server still answers.
    while !is_in_state(process, &STOPPED) && !deadline.is_over() {
        pause(Duration::from_micros(100));
    }
}

/// The states of processes, as the system names them.
const ENDED: [char; 2] = ['Z', 'X'];
const STOPPED: [char; 3] = ['T', 'Z', 'X'];

/// Whether every thread of a process is in one of these states, or gone.
fn is_in_state(process: u32, states: &[char]) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return true };
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with(states) || rest.is_empty())
    })
}

/// The processes that a process with one thread started.
fn children(process: u32) -> Vec<u32> {
    let all = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    all.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

fn signal(process: u32, signal: Signal) {
    if let Some(id) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(id, signal);
    }
}

#[allow(clippy::disallowed_methods, reason = "between two looks at whether a server is ready")]
fn pause(duration: Duration) {
    thread::sleep(duration);
}
