//! The servers that a workload talks to: its own, which end with it.

use std::path::PathBuf;

use leasehold_testkit::redis::Server;

use crate::contenders::Locks;
use crate::harness::{Role, Side};
use crate::job::{Job, runtime};
use crate::load::Result;
use crate::log::{CALLS, CONNECTIONS, MEMORY, SERVER_CPU};
use crate::report::Report;

/// What a server has done since it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerWork {
    pub(crate) cpu_micros: f64,
    /// Calls of commands or statements.
    pub(crate) calls: f64,
}

impl ServerWork {
    /// The work since then for each of so many cycles.
    pub(crate) fn per_cycle(self, before: Self, cycles: usize) -> [(&'static str, f64); 2] {
        let each = |now: f64, then: f64| (now - then) / cycles.max(1) as f64;
        [(SERVER_CPU, each(self.cpu_micros, before.cpu_micros)), (CALLS, each(self.calls, before.calls))]
    }
}

/// A side beside whose cycles the work of its server is counted.
pub(crate) fn with_server_work<'a>(
    role: Role,
    name: &str,
    job: Job,
    work: impl Fn() -> Result<ServerWork> + 'a,
) -> Side<'a> {
    Side::new(role, name, move |pace| {
        let mut before = Ok(ServerWork::default());
        // What it costs to connect is no part of a cycle.
        let mut sample = job.run_after(pace, || before = work())?;
        let spent = work()?.per_cycle(before?, sample.acquisitions);
        sample.figures.extend(spent);
        Ok(sample)
    })
}

/// Runs the future in a thread of its own, because its caller may be inside a runtime.
pub(crate) fn beside<T: Send>(asked: impl Future<Output = Result<T>> + Send) -> Result<T> {
    let ask = || runtime(0)?.block_on(asked);
    std::thread::scope(|scope| scope.spawn(ask).join()).map_err(|_| "the server does not answer")?
}

/// A figure of `INFO`.
fn told(info: &str, name: &str) -> Option<f64> {
    info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

async fn work_of(server: &Server) -> Result<ServerWork> {
    let (cpu, stats) = (server.ask(&["INFO", "cpu"]).await, server.ask(&["INFO", "commandstats"]).await);
    let (user, system) = (told(cpu.text(), "used_cpu_user:"), told(cpu.text(), "used_cpu_sys:"));
    let calls =
        stats.text().lines().filter_map(|line| line.split_once(":calls=")?.1.split(',').next()?.parse::<f64>().ok());
    let cpu = user.zip(system).ok_or("Redis does not tell its processor time")?;
    Ok(ServerWork { cpu_micros: (cpu.0 + cpu.1) * 1e6, calls: calls.sum() })
}

/// The `leasehold` program. `None`: `cargo xtask bench` has not built it.
pub(crate) fn program() -> Option<PathBuf> {
    std::env::var_os("LEASEHOLD_BENCH_PROGRAM").map(PathBuf::from).filter(|path| path.exists())
}

/// The row of a workload without it.
pub(crate) fn not_built(id: &'static str) -> Report {
    Report::absent(id, "the program: not built; cargo xtask bench builds it")
}

/// One Redis.
pub(crate) struct Redis(Server);

impl Redis {
    /// `None`: it is not installed.
    pub(crate) fn start() -> Result<Option<Self>> {
        Ok(runtime(0)?.block_on(Server::start(&[])).map(Self))
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    pub(crate) fn ours(&self) -> Locks {
        Locks::RedisSingle { url: self.url(), local_handoff: true }
    }

    /// With the pauses that it makes by default: 200 ms at most.
    pub(crate) fn rslock(&self) -> Locks {
        Locks::Rslock { urls: vec![self.url()], retry_millis: 200 }
    }

    /// What it has done until now.
    pub(crate) fn work(&self) -> Result<ServerWork> {
        beside(work_of(&self.0))
    }

    /// How many clients it has, and its memory.
    pub(crate) fn clients(&self) -> Result<[(&'static str, f64); 2]> {
        beside(async {
            let (clients, memory) = (self.0.ask(&["INFO", "clients"]).await, self.0.ask(&["INFO", "memory"]).await);
            let clients = told(clients.text(), "connected_clients:").ok_or("Redis does not tell its clients")?;
            let memory = told(memory.text(), "used_memory:").ok_or("Redis does not tell its memory")?;
            Ok([(CONNECTIONS, clients), (MEMORY, memory / 1e6)])
        })
    }

    /// How often it has carried out these commands. What a script does counts as well.
    pub(crate) fn calls(&self, commands: &[&str]) -> Result<u64> {
        let calls = commands.iter().map(|command| self.0.calls(command));
        Ok(runtime(0)?.block_on(futures::future::join_all(calls)).into_iter().sum())
    }
}

/// Five that know nothing of each other.
pub(crate) struct FiveNodes(Vec<Server>);

impl FiveNodes {
    /// `None`: Redis is not installed.
    pub(crate) fn start() -> Result<Option<Self>> {
        let five = (0..5).map(|_| Server::start(&[]));
        let started: Option<Vec<Server>> = runtime(0)?.block_on(futures::future::join_all(five)).into_iter().collect();
        Ok(started.map(Self))
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.0.iter().map(Server::url).collect()
    }

    /// What one of them has done until now, on average.
    pub(crate) fn work_of_each(&self) -> Result<ServerWork> {
        let all = beside(futures::future::try_join_all(self.0.iter().map(work_of)))?;
        let mean = |figure: fn(&ServerWork) -> f64| all.iter().map(figure).sum::<f64>() / all.len() as f64;
        Ok(ServerWork { cpu_micros: mean(|work| work.cpu_micros), calls: mean(|work| work.calls) })
    }

    /// Two of them stop in their tracks.
    pub(crate) fn stop_two(&self) {
        self.0[3..].iter().for_each(Server::pause);
    }

    /// They go on, and have caught up with what was sent to them when this returns.
    pub(crate) fn resume_two(&self) -> Result<()> {
        let two = &self.0[3..];
        two.iter().for_each(Server::resume);
        runtime(0)?.block_on(futures::future::join_all(two.iter().map(|server| server.ask(&["PING"]))));
        Ok(())
    }
}
