//! A load on a contender, here or in several processes at the same time.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

use crate::contenders::Locks;
use crate::harness::Pace;
use crate::load::{Load, Result, now};
use crate::log::{Keys, Log, Sample};

/// What is run and how.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    program: Program,
    keys: Keys,
    tasks: usize,
    processes: usize,
    hold_micros: u64,
    /// How much longer than others: slow holders need time to come round.
    stretch: u64,
}

/// Who runs the loop.
#[derive(Clone, Debug)]
enum Program {
    /// This one: in this process, or in children.
    This { locks: Locks, workers: usize },
    /// One that speaks the same protocol: the command, and what it is told beside the load.
    Other { command: Vec<String>, url: String },
}

/// What a child process is told, as its last argument.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    load: Load,
    workers: usize,
    locks: Option<Locks>,
    url: Option<String>,
}

impl Job {
    /// Each task has its own key, in this process.
    pub(crate) fn own_keys(locks: Locks, tasks: usize) -> Self {
        Self::new(Program::This { locks, workers: 0 }, Keys::Own, tasks)
    }

    /// All want the same key, in this process.
    pub(crate) fn hot_key(locks: Locks, tasks: usize) -> Self {
        Self::new(Program::This { locks, workers: 0 }, Keys::Shared, tasks)
    }

    /// The same, by another program, which runs in a process of its own.
    pub(crate) fn of_other(command: Vec<String>, url: &str, keys: Keys, tasks: usize) -> Self {
        Self { processes: 1, ..Self::new(Program::Other { command, url: url.to_owned() }, keys, tasks) }
    }

    fn new(program: Program, keys: Keys, tasks: usize) -> Self {
        Self { program, keys, tasks, processes: 0, hold_micros: 0, stretch: 1 }
    }

    /// On a runtime with so many worker threads instead of the current one.
    pub(crate) fn workers(mut self, number: usize) -> Self {
        if let Program::This { workers, .. } = &mut self.program {
            *workers = number;
        }
        self
    }

    /// In so many processes, each with as many tasks.
    pub(crate) fn processes(self, processes: usize) -> Self {
        Self { processes, ..self }
    }

    /// Each grant is held so long, and the run is twice as long.
    pub(crate) fn hold(self, hold: Duration) -> Self {
        Self { hold_micros: hold.as_micros() as u64, stretch: 2, ..self }
    }

    /// One run.
    ///
    /// # Errors
    /// What broke, or how the contender was no lock.
    pub(crate) fn run(&self, pace: Pace) -> Result<Sample> {
        let load = self.load(pace, 0);
        let (start, log) = match &self.program {
            Program::This { locks, workers } if self.processes == 0 => here(locks, *workers, &load)?,
            _ => self.in_children(pace)?,
        };
        log.check(self.keys)?;
        Ok(log.sample(self.keys, self.tasks * self.processes.max(1), &load.window(start)))
    }

    fn load(&self, pace: Pace, process: usize) -> Load {
        Load {
            keys: self.keys,
            tasks: self.tasks,
            first_task: process * self.tasks,
            hold_micros: self.hold_micros,
            warm_up_millis: pace.warm_up_millis,
            window_millis: pace.window_millis * self.stretch,
        }
    }

    fn in_children(&self, pace: Pace) -> Result<(u64, Log)> {
        let children = (0..self.processes).map(|process| {
            let load = self.load(pace, process);
            let (command, orders) = match &self.program {
                Program::This { locks, workers } => {
                    let this = std::env::current_exe()?.display().to_string();
                    let orders = Orders { load, workers: *workers, locks: Some(locks.clone()), url: None };
                    (vec![this, "--child".to_owned()], orders)
                }
                Program::Other { command, url } => {
                    (command.clone(), Orders { load, workers: 0, locks: None, url: Some(url.clone()) })
                }
            };
            Subordinate::start(&command, &serde_json::to_string(&orders)?)
        });
        let mut children = children.collect::<Result<Vec<_>>>()?;
        for child in &mut children {
            child.is_ready()?;
        }
        let start = now() + 10_000_000;
        for child in &mut children {
            child.go(start)?;
        }
        let logs = children.into_iter().map(Subordinate::log).collect::<Result<Vec<_>>>()?;
        Ok((start, Log::merged(logs)))
    }
}

/// A runtime on the current thread for 0, else with so many threads.
pub(crate) fn runtime(workers: usize) -> Result<Runtime> {
    let mut builder = if workers == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    Ok(builder.worker_threads(workers.max(1)).enable_all().build()?)
}

fn here(locks: &Locks, workers: usize, load: &Load) -> Result<(u64, Log)> {
    let mut started = 0;
    let begin = || {
        started = now();
        Ok(started)
    };
    let log = runtime(workers)?.block_on(locks.run(load, begin))?;
    Ok((started, log))
}

/// The child's side: connects, says so, is told when to start, and prints its log.
pub(crate) fn obey(orders: &str) -> Result<()> {
    let orders: Orders = serde_json::from_str(orders)?;
    let locks = orders.locks.ok_or("no locks to run")?;
    let start = || {
        println!("ready");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        Ok(line.trim().parse()?)
    };
    let log = runtime(orders.workers)?.block_on(locks.run(&orders.load, start))?;
    println!("{}", serde_json::to_string(&log)?);
    Ok(())
}

/// The parent's side of a child. Killed when dropped.
struct Subordinate {
    child: Child,
    input: ChildStdin,
    /// Its lines. They come through a channel, so that one that hangs is noticed.
    lines: mpsc::Receiver<std::io::Result<String>>,
    name: PathBuf,
}

impl Subordinate {
    const PATIENCE: Duration = Duration::from_secs(60);

    fn start(command: &[String], orders: &str) -> Result<Self> {
        let (program, arguments) = command.split_first().ok_or("no command")?;
        let mut child = Command::new(program)
            .args(arguments)
            .arg(orders)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = child.stdout.take().ok_or("no output")?;
        let name = arguments.first().filter(|first| !first.starts_with('-')).unwrap_or(program).into();
        Ok(Self { child, input, lines: read_lines(output), name })
    }

    fn is_ready(&mut self) -> Result<()> {
        let line = self.line()?;
        if line == "ready" { Ok(()) } else { Err(self.complaint(&line)) }
    }

    fn go(&mut self, start: u64) -> Result<()> {
        Ok(writeln!(self.input, "{start}")?)
    }

    fn log(mut self) -> Result<Log> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|_| self.complaint(&line))
    }

    fn line(&mut self) -> Result<String> {
        match self.lines.recv_timeout(Self::PATIENCE) {
            Ok(line) => Ok(line?),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(self.complaint("nothing, for a minute")),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(self.complaint("nothing, and ended")),
        }
    }

    fn complaint(&self, line: &str) -> Box<dyn std::error::Error + Send + Sync> {
        let line: String = line.chars().take(200).collect();
        format!("{} said {line}", self.name.display()).into()
    }
}

impl Drop for Subordinate {
    fn drop(&mut self) {
        // It has ended by itself, unless something broke.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(output: ChildStdout) -> mpsc::Receiver<std::io::Result<String>> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || BufReader::new(output).lines().try_for_each(|line| sender.send(line)));
    lines
}
