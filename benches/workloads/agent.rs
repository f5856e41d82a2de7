//! A1, A64, AF, A500: locks by way of `leasehold agent`, beside direct ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use leasehold_testkit::{Deadline, KilledOnDrop, PATIENCE};
use tempfile::TempDir;

use crate::contenders::Locks;
use crate::harness::{Role, Side, interleave};
use crate::job::Job;
use crate::load::Result;
use crate::log::{CONNECTIONS, CPU, MEMORY, P50, PER_SECOND};
use crate::pace::Pace;
use crate::report::Report;
use crate::servers::{Redis, not_built, program};

/// The backend `agent:`.
const OURS: &str = "agent:";
/// The lines, as a client in any language says them.
const LINES: &str = "lines";
const DIRECT: &str = "direct";

/// One task, with a key of its own.
pub(crate) fn a1(pace: Pace) -> Result<Report> {
    on_redis("A1", "1 task", pace, 1, &[P50, CPU])
}

/// 64 tasks of one process, each with a key of its own.
pub(crate) fn a64(pace: Pace) -> Result<Report> {
    on_redis("A64", "64 tasks", pace, 64, &[PER_SECOND, CPU])
}

fn on_redis(id: &'static str, words: &str, pace: Pace, tasks: usize, figures: &[&'static str]) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent(id, "no redis-server")) };
    let Some(program) = program() else { return Ok(not_built(id)) };
    let agent = Agent::start(&program, &redis.url())?;
    let side = |role, name, locks| Side::job(role, name, Job::own_keys(locks, tasks));
    let sides = vec![
        side(Role::Ours, OURS, Locks::Agent { socket: agent.socket() }),
        side(Role::Ours, LINES, Locks::AgentLines { socket: agent.socket() }),
        side(Role::Peer, DIRECT, redis.ours()),
    ];
    let rounds = interleave(pace, sides)?;
    let row = |(name, figure): (&str, _)| rounds.row(id, &format!("{name} {words}: {figure}"), name, figure, &[]);
    let names = [OURS, LINES].into_iter();
    Ok(Report::of(names.flat_map(|name| figures.iter().map(move |figure| (name, *figure))).map(row)))
}

/// `file:`, which only takes the lines.
pub(crate) fn files(pace: Pace) -> Result<Report> {
    let folder = tempfile::tempdir()?;
    let locks = folder.path().join("locks");
    let Some(program) = program() else { return Ok(not_built("AF")) };
    let agent = Agent::start(&program, &format!("file:{}", locks.display()))?;
    let sides = vec![
        Side::job(Role::Ours, LINES, Job::own_keys(Locks::AgentLines { socket: agent.socket() }, 1)),
        Side::job(Role::Peer, DIRECT, Job::own_keys(Locks::File { folder: locks }, 1)),
    ];
    let rounds = interleave(pace, sides)?;
    Ok(Report::of([rounds.row("AF", "lines, `file:`, 1 task: p50 of a cycle, µs", LINES, P50, &[])]))
}

/// 500 processes of one host, on a key each and on one.
pub(crate) fn many_processes(pace: Pace) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent("A500", "no redis-server")) };
    let Some(program) = program() else { return Ok(not_built("A500")) };
    let agent = Agent::start(&program, &redis.url())?;
    // So many take their time until all have begun.
    let long = Pace { rounds: 1, warm_up_millis: 2000, window_millis: 3000, ..pace };
    let (pace, processes) = if pace.quick { (pace, 50) } else { (long, 500) };
    let mut report = Report::default();
    for (words, is_hot) in [("own keys", false), ("one key", true)] {
        let side = |role, name, locks| {
            let job = if is_hot { Job::hot_key(locks, 1) } else { Job::own_keys(locks, 1) }.processes(processes);
            let redis = &redis;
            Side::new(role, name, move |pace| {
                let mut clients = Ok([("", 0.0); 2]);
                let mut sample = job.run_after(pace, || clients = redis.clients())?;
                sample.figures.extend(clients?);
                Ok(sample)
            })
        };
        let locks = Locks::Agent { socket: agent.socket() };
        let rounds = interleave(pace, vec![side(Role::Ours, OURS, locks), side(Role::Peer, DIRECT, redis.ours())])?;
        for figure in [PER_SECOND, CONNECTIONS, MEMORY] {
            report.push(rounds.row("A500", &format!("{processes} processes, {words}: {figure}"), OURS, figure, &[]));
        }
    }
    Ok(report)
}

/// An agent, until this is dropped.
struct Agent {
    _program: KilledOnDrop,
    folder: TempDir,
}

impl Agent {
    /// Starts one before this store, and waits until it listens.
    fn start(program: &Path, url: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let policy = folder.path().join("policy");
        fs::write(&policy, "* * keys=100000 connections=100000")?;
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o600))?;
        let mut command = Command::new(program);
        command.arg("--backend").arg(url).arg("agent").arg("--policy").arg(policy);
        command.arg("--socket").arg(folder.path().join("sock")).stdin(Stdio::null());
        let agent = Self { _program: KilledOnDrop::spawn(&mut command)?, folder };
        let deadline = Deadline::after(PATIENCE);
        while UnixStream::connect(agent.socket()).is_err() {
            if deadline.is_over() {
                return Err("the agent does not listen".into());
            }
        }
        Ok(agent)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("sock")
    }
}
