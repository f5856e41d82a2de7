//! Runs a load on a contender, in this process or in several child processes at the same time.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use leasehold_testkit::KilledOnDrop;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::contenders::Locks;
use crate::load::{Failure, Load, Pace, Result, now};
use crate::log::{Keys, Log, Sample};

/// What the tasks of a job do: which keys they want, how many they are in how many processes, and how long each grant is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) keys: Keys,
    /// In each process.
    pub(crate) tasks: usize,
    /// 0: this process.
    pub(crate) processes: usize,
    /// Threads of the runtime. 0: the current thread.
    pub(crate) workers: usize,
    /// How long each grant is held. If it is, the measured window is twice as long: slow holders need time until all have
    /// had a turn.
    pub(crate) hold_micros: u64,
}

impl Shape {
    /// Tasks of this process, each with a key of its own.
    pub(crate) const fn own_keys(tasks: usize) -> Self {
        Self { keys: Keys::Own, tasks, processes: 0, workers: 0, hold_micros: 0 }
    }

    /// Tasks of this process that all want one key.
    pub(crate) const fn hot_key(tasks: usize) -> Self {
        Self { keys: Keys::Shared, ..Self::own_keys(tasks) }
    }

    /// What one of the processes does.
    pub(crate) const fn load(self, pace: Pace, process: usize) -> Load {
        let Self { keys, tasks, hold_micros, .. } = self;
        let window_millis = pace.window_millis * if hold_micros > 0 { 2 } else { 1 };
        let first_task = process * tasks;
        Load { keys, tasks, first_task, hold_micros, warm_up_millis: pace.warm_up_millis, window_millis }
    }

    /// The figures of a run that began at `start`, if the lock was one.
    pub(crate) fn judged(self, pace: Pace, start: u64, log: &Log) -> Result<Sample> {
        log.check(self.keys)?;
        Ok(log.sample(self.keys, self.tasks * self.processes.max(1), &self.load(pace, 0).window(start)))
    }
}

/// One run of a load: a loop of acquire, hold and release.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    program: Program,
    shape: Shape,
}

/// The program that runs the loop.
#[derive(Clone, Debug)]
enum Program {
    /// This program, in this process or in child processes.
    This(Locks),
    /// Another program: its command, and the URL that it gets beside the load.
    Other(Vec<String>, String),
}

impl Job {
    pub(crate) fn of(locks: Locks, shape: Shape) -> Self {
        Self { program: Program::This(locks), shape }
    }

    /// A job of another program, in a process of its own.
    pub(crate) fn of_other(command: Vec<String>, url: String, shape: Shape) -> Self {
        Self { program: Program::Other(command, url), shape: Shape { processes: shape.processes.max(1), ..shape } }
    }

    /// Runs the job once.
    ///
    /// # Errors
    /// What failed, or how the contender broke mutual exclusion or the order of tokens.
    pub(crate) fn run(&self, pace: Pace) -> Result<Sample> {
        self.run_after(pace, || {})
    }

    /// The same, which calls `connected` when all clients have connected, before the load starts.
    pub(crate) fn run_after(&self, pace: Pace, connected: impl FnOnce()) -> Result<Sample> {
        let (start, log) = match &self.program {
            Program::This(locks) if self.shape.processes == 0 => self.here(locks, pace, connected)?,
            _ => self.in_children(pace, connected)?,
        };
        self.shape.judged(pace, start, &log)
    }

    fn here(&self, locks: &Locks, pace: Pace, connected: impl FnOnce()) -> Result<(u64, Log)> {
        let mut started = 0;
        let begin = || {
            connected();
            started = now();
            Ok(started)
        };
        let log = runtime(self.shape.workers)?.block_on(locks.run(&self.shape.load(pace, 0), begin))?;
        Ok((started, log))
    }

    fn in_children(&self, pace: Pace, connected: impl FnOnce()) -> Result<(u64, Log)> {
        let command = match &self.program {
            Program::This(_) => vec![std::env::current_exe()?.display().to_string(), "--child".to_owned()],
            Program::Other(command, _) => command.clone(),
        };
        let children = (0..self.shape.processes).map(|process| {
            let load = self.shape.load(pace, process);
            let orders = match &self.program {
                Program::This(locks) => json!((load, self.shape.workers, locks)),
                Program::Other(_, url) => json!({ "load": load, "url": url }),
            };
            ChildProcess::start(&command, &orders.to_string())
        });
        let mut children = children.collect::<Result<Vec<_>>>()?;
        children.iter().try_for_each(ChildProcess::wait_until_ready)?;
        connected();
        let start = now() + 10_000_000;
        for child in &mut children {
            writeln!(child.input, "{start}")?;
        }
        let mut all = Log::default();
        for child in &children {
            let Log { spans, cpu } = child.log()?;
            all.spans.extend(spans);
            all.cpu += cpu;
        }
        Ok((start, all))
    }
}

/// Creates a runtime with this many worker threads, or one on the current thread for 0.
pub(crate) fn runtime(workers: usize) -> Result<Runtime> {
    let mut builder = if workers == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    Ok(builder.worker_threads(workers.max(1)).enable_all().build()?)
}

/// The child's side of a job: connects, prints `ready`, reads from standard input when to start, runs the load, and
/// prints its log as JSON.
pub(crate) fn run_as_child(orders: &str) -> Result<()> {
    let (load, workers, locks): (Load, usize, Locks) = serde_json::from_str(orders)?;
    let start = || {
        println!("ready");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        Ok(line.trim().parse()?)
    };
    let log = runtime(workers)?.block_on(locks.run(&load, start))?;
    println!("{}", serde_json::to_string(&log)?);
    Ok(())
}

/// The parent's side of a child process that runs a load. The child is killed when this is dropped.
struct ChildProcess {
    _child: KilledOnDrop,
    input: ChildStdin,
    /// The lines that the child prints. They come through a channel, so that a child that hangs is noticed.
    lines: mpsc::Receiver<std::io::Result<String>>,
    name: String,
}

impl ChildProcess {
    const LONGEST_SILENCE: Duration = Duration::from_secs(60);

    /// Starts `words` with `load` as its last argument.
    fn start(words: &[String], load: &str) -> Result<Self> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(load).stdin(Stdio::piped()).stdout(Stdio::piped());
        let name = words.join(" ");
        let mut child = KilledOnDrop::spawn(&mut command).map_err(|error| format!("{name}: {error}"))?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = child.stdout.take().ok_or("no output")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || BufReader::new(output).lines().try_for_each(|line| sender.send(line)));
        Ok(Self { _child: child, input, lines, name })
    }

    /// Waits until the child has connected.
    fn wait_until_ready(&self) -> Result<()> {
        let line = self.line()?;
        if line == "ready" { Ok(()) } else { Err(self.failed(&line)) }
    }

    fn log(&self) -> Result<Log> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|_| self.failed(&line))
    }

    fn line(&self) -> Result<String> {
        match self.lines.recv_timeout(Self::LONGEST_SILENCE) {
            Ok(line) => Ok(line?),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(self.failed("nothing, for a minute")),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(self.failed("nothing, and ended")),
        }
    }

    fn failed(&self, line: &str) -> Failure {
        format!("{} printed {}", self.name, line.chars().take(200).collect::<String>()).into()
    }
}
