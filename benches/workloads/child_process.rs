use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use leasehold_testkit::KilledOnDrop;

use crate::load::Result;
use crate::log::Log;

/// The parent's side of a child process that runs a load. The child is killed when this is dropped.
pub(crate) struct ChildProcess {
    /// Ended when this is dropped; it has ended by itself, unless something broke.
    _child: KilledOnDrop,
    input: ChildStdin,
    /// The lines that the child prints. They come through a channel, so that a child that hangs is noticed.
    lines: mpsc::Receiver<std::io::Result<String>>,
    name: PathBuf,
}

impl ChildProcess {
    const LONGEST_SILENCE: Duration = Duration::from_secs(60);

    /// Starts `command` with `load` as its last argument.
    pub(crate) fn start(command: &[String], load: &str) -> Result<Self> {
        let (program, arguments) = command.split_first().ok_or("no command")?;
        let mut command = Command::new(program);
        command.args(arguments).arg(load).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = KilledOnDrop::spawn(&mut command).map_err(|error| format!("{program}: {error}"))?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = child.stdout.take().ok_or("no output")?;
        let name = arguments.first().filter(|first| !first.starts_with('-')).unwrap_or(program).into();
        Ok(Self { _child: child, input, lines: read_lines(output), name })
    }

    /// Waits until the child has connected.
    pub(crate) fn wait_until_ready(&mut self) -> Result<()> {
        let line = self.line()?;
        if line == "ready" { Ok(()) } else { Err(self.failed(&line)) }
    }

    /// Tells the child to start its load at `start`, in nanoseconds of the monotonic clock.
    pub(crate) fn start_load(&mut self, start: u64) -> Result<()> {
        Ok(writeln!(self.input, "{start}")?)
    }

    /// Waits for the child's log.
    pub(crate) fn log(mut self) -> Result<Log> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|_| self.failed(&line))
    }

    fn line(&mut self) -> Result<String> {
        match self.lines.recv_timeout(Self::LONGEST_SILENCE) {
            Ok(line) => Ok(line?),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(self.failed("nothing, for a minute")),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(self.failed("nothing, and ended")),
        }
    }

    fn failed(&self, line: &str) -> Box<dyn std::error::Error + Send + Sync> {
        let line: String = line.chars().take(200).collect();
        format!("{} printed {line}", self.name.display()).into()
    }
}

fn read_lines(output: ChildStdout) -> mpsc::Receiver<std::io::Result<String>> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || BufReader::new(output).lines().try_for_each(|line| sender.send(line)));
    lines
}
