//! Runs a load on a contender, in this process or in several child processes at the same time.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

use crate::child_process::ChildProcess;
use crate::contenders::Locks;
use crate::load::{Load, Result, now};
use crate::log::{Keys, Log, Sample};
use crate::pace::Pace;

/// One run of a load: the contender, its keys, tasks and processes, and how long each grant is held.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    program: Program,
    keys: Keys,
    tasks: usize,
    processes: usize,
    hold_micros: u64,
    /// Factor by which the measured window is longer than that of other jobs: slow holders need time until all have had a turn.
    stretch: u64,
}

/// The program that runs the loop of acquire, hold and release.
#[derive(Clone, Debug)]
enum Program {
    /// This program, in this process or in child processes.
    This { locks: Locks, workers: usize },
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
    /// A job in this process in which each task acquires its own key.
    pub(crate) fn own_keys(locks: Locks, tasks: usize) -> Self {
        Self::new(Program::This { locks, workers: 0 }, Keys::Own, tasks)
    }

    /// A job in this process in which all tasks acquire the same key.
    pub(crate) fn hot_key(locks: Locks, tasks: usize) -> Self {
        Self::new(Program::This { locks, workers: 0 }, Keys::Shared, tasks)
    }

    /// A job that another program runs in a process of its own.
    pub(crate) fn of_other(command: Vec<String>, url: &str, keys: Keys, tasks: usize) -> Self {
        Self { processes: 1, ..Self::new(Program::Other { command, url: url.to_owned() }, keys, tasks) }
    }

    fn new(program: Program, keys: Keys, tasks: usize) -> Self {
        Self { program, keys, tasks, processes: 0, hold_micros: 0, stretch: 1 }
    }

    /// Runs the tasks on a runtime with this many worker threads, instead of on the current thread.
    pub(crate) fn workers(mut self, number: usize) -> Self {
        if let Program::This { workers, .. } = &mut self.program {
            *workers = number;
        }
        self
    }

    /// Runs the job in this many processes, each with the full number of tasks.
    pub(crate) fn processes(self, processes: usize) -> Self {
        Self { processes, ..self }
    }

    /// Holds each grant this long, and doubles the measured window.
    pub(crate) fn hold(self, hold: Duration) -> Self {
        Self { hold_micros: hold.as_micros() as u64, stretch: 2, ..self }
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
        let (start, log) = match &self.program {
            Program::This { locks, workers } if self.processes == 0 => here(locks, *workers, &load, connected)?,
            _ => self.in_children(pace, connected)?,
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

    fn in_children(&self, pace: Pace, connected: impl FnOnce()) -> Result<(u64, Log)> {
        let children = (0..self.processes).map(|process| {
            let load = self.load(pace, process);
            let (command, child_load) = match &self.program {
                Program::This { locks, workers } => {
                    let this = std::env::current_exe()?.display().to_string();
                    let child_load = ChildLoad { load, workers: *workers, locks: Some(locks.clone()), url: None };
                    (vec![this, "--child".to_owned()], child_load)
                }
                Program::Other { command, url } => {
                    (command.clone(), ChildLoad { load, workers: 0, locks: None, url: Some(url.clone()) })
                }
            };
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
