//! Runs a load on a contender, in this process or in several child processes at the same time.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

use crate::child_process::ChildProcess;
use crate::contenders::Locks;
use crate::load::{Load, Result, now};
use crate::log::{Keys, Log, Sample};
use crate::pace::Pace;

/// What the tasks of a job do: which keys they want, how many they are in how many processes, and how long each grant is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) keys: Keys,
    /// In each process.
    pub(crate) tasks: usize,
    /// 0: this process.
    processes: usize,
    /// Threads of the runtime. 0: the current thread.
    workers: usize,
    hold_micros: u64,
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

    /// On a runtime with this many worker threads.
    pub(crate) const fn workers(self, workers: usize) -> Self {
        Self { workers, ..self }
    }

    /// In this many processes, each with the full number of tasks.
    pub(crate) const fn processes(self, processes: usize) -> Self {
        Self { processes, ..self }
    }

    /// Holds each grant this long, and doubles the measured window: slow holders need time until all have had a turn.
    pub(crate) const fn hold(self, hold: Duration) -> Self {
        Self { hold_micros: hold.as_micros() as u64, ..self }
    }
}

/// One run of a load.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    program: Program,
    shape: Shape,
}

/// The program that runs the loop of acquire, hold and release.
#[derive(Clone, Debug)]
enum Program {
    /// This program, in this process or in child processes.
    This(Locks),
    /// Another program that reads the same JSON: its command, and the URL that it gets beside the load.
    Other { command: Vec<String>, url: String },
}

/// The last argument of a child process, as JSON: the load that it runs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChildLoad {
    load: Load,
    workers: usize,
    locks: Option<Locks>,
    url: Option<String>,
}

impl Job {
    pub(crate) fn of(locks: Locks, shape: Shape) -> Self {
        Self { program: Program::This(locks), shape }
    }

    /// A job of another program, in a process of its own.
    pub(crate) fn of_other(command: Vec<String>, url: &str, shape: Shape) -> Self {
        let program = Program::Other { command, url: url.to_owned() };
        Self { program, shape: shape.processes(shape.processes.max(1)) }
    }

    /// Runs the job once.
    ///
    /// # Errors
    /// What failed, or how the contender broke mutual exclusion or the order of tokens.
    pub(crate) fn run(&self, pace: Pace) -> Result<Sample> {
        self.run_after(pace, || {})
    }

    /// Runs the job once. Calls `connected` when all clients have connected, before the load starts.
    ///
    /// # Errors
    /// The same as for [`run`](Self::run).
    pub(crate) fn run_after(&self, pace: Pace, connected: impl FnOnce()) -> Result<Sample> {
        let load = self.load(pace, 0);
        let Shape { keys, tasks, processes, workers, .. } = self.shape;
        let (start, log) = match &self.program {
            Program::This(locks) if processes == 0 => here(locks, workers, &load, connected)?,
            _ => self.in_children(pace, connected)?,
        };
        log.check(keys)?;
        Ok(log.sample(keys, tasks * processes.max(1), &load.window(start)))
    }

    fn load(&self, pace: Pace, process: usize) -> Load {
        let Shape { keys, tasks, hold_micros, .. } = self.shape;
        let stretch = if hold_micros > 0 { 2 } else { 1 };
        Load {
            keys,
            tasks,
            first_task: process * tasks,
            hold_micros,
            warm_up_millis: pace.warm_up_millis,
            window_millis: pace.window_millis * stretch,
        }
    }

    fn in_children(&self, pace: Pace, connected: impl FnOnce()) -> Result<(u64, Log)> {
        let children = (0..self.shape.processes).map(|process| {
            let (command, locks, url) = match &self.program {
                Program::This(locks) => {
                    let this = std::env::current_exe()?.display().to_string();
                    (vec![this, "--child".to_owned()], Some(locks.clone()), None)
                }
                Program::Other { command, url } => (command.clone(), None, Some(url.clone())),
            };
            let child_load = ChildLoad { load: self.load(pace, process), workers: self.shape.workers, locks, url };
            ChildProcess::start(&command, &serde_json::to_string(&child_load)?)
        });
        let mut children = children.collect::<Result<Vec<_>>>()?;
        for child in &mut children {
            child.wait_until_ready()?;
        }
        connected();
        let start = now() + 10_000_000;
        for child in &mut children {
            child.start_load(start)?;
        }
        let logs = children.into_iter().map(ChildProcess::log).collect::<Result<Vec<_>>>()?;
        Ok((start, Log::merged(logs)))
    }
}

/// Creates a runtime with this many worker threads, or one on the current thread for 0.
pub(crate) fn runtime(workers: usize) -> Result<Runtime> {
    let mut builder = if workers == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    Ok(builder.worker_threads(workers.max(1)).enable_all().build()?)
}

fn here(locks: &Locks, workers: usize, load: &Load, connected: impl FnOnce()) -> Result<(u64, Log)> {
    let mut started = 0;
    let begin = || {
        connected();
        started = now();
        Ok(started)
    };
    let log = runtime(workers)?.block_on(locks.run(load, begin))?;
    Ok((started, log))
}

/// The child's side of a job: connects, prints `ready`, reads from standard input when to start, runs the load, and
/// prints its log as JSON.
pub(crate) fn run_as_child(child_load: &str) -> Result<()> {
    let child_load: ChildLoad = serde_json::from_str(child_load)?;
    let locks = child_load.locks.ok_or("no locks to run")?;
    let start = || {
        println!("ready");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        Ok(line.trim().parse()?)
    };
    let log = runtime(child_load.workers)?.block_on(locks.run(&child_load.load, start))?;
    println!("{}", serde_json::to_string(&log)?);
    Ok(())
}
