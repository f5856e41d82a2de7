//! What is no comparison of loops: batches of commands (S), stopped nodes (Q-down), a program beside flock(1) (F1).

use std::process::{Command, Stdio};

use fred::interfaces::{ClientLike, KeysInterface};
use fred::types::{ClusterHash, CustomCommand, Expiration, SetOptions};
use futures::future::try_join_all;

use crate::contenders::redis::{Bare, LEASE_MILLIS};
use crate::contenders::{Kind, Role};
use crate::harness::{Aim, Side, interleave};
use crate::job::{Job, Shape, runtime};
use crate::load::{Failure, Pace, Result, now};
use crate::log::{P50, P99, PER_SECOND, SERVER_CPU, Sample, histogram};
use crate::report::Report;
use crate::servers::{Store, figures, program};

const OURS: &str = "ours";

/// Workload S: what a cycle of claim and release costs a Redis server, by how many are sent together. Ours are tasks that each have a
/// key of their own, and go to the server as the client sends them: for batches of some size twice as many tasks, because it has two
/// batches on their way. So have the bare commands, each always full.
pub(crate) fn batches(redis: &Store, pace: Pace) -> Result<Report> {
    let mut report = Report::default();
    let batches: [(_, _, &[Aim]); 4] =
        [(1, 1, &[Aim::WithinFloor(2.0)]), (8, 2, &[]), (32, 2, &[Aim::WithinFloor(1.1)]), (64, 2, &[])];
    for (size, lanes, aims) in batches {
        let job = Job::of(redis.locks(Kind::RedisSingle), Shape::own_keys(size * lanes));
        let ours = |pace| redis.counted(&job, &[], pace);
        let bare = |pace| bare_batches(redis, size, lanes, pace);
        let sides = vec![Side::new(Role::Ours, OURS, ours), Side::new(Role::Floor, "bare commands", bare)];
        let rounds = interleave(pace, sides)?.least(SERVER_CPU);
        let what = format!("batches of {size} (ours: {} tasks): least server CPU, µs/cycle", size * lanes);
        report.rows.push(rounds.row(&what, OURS, SERVER_CPU, aims));
    }
    Ok(report)
}

/// One round of batches of this size, of which so many are on their way: the server's processor time for all cycles.
fn bare_batches(redis: &Store, size: usize, lanes: usize, pace: Pace) -> Result<Sample> {
    runtime(0)?.block_on(async {
        let url = redis.url();
        let lanes = try_join_all((0..lanes).map(|_| Bare::connect(&url))).await?;
        let before = redis.work(&[])?;
        let end = now() + (pace.warm_up_millis + pace.window_millis) * 1_000_000;
        let cycles = lanes.iter().enumerate().map(async |(number, lane)| {
            let keys: Vec<String> = (0..size).map(|key| format!("{{bare:bench/{number}/{key}}}:lock")).collect();
            let mut cycles = 0;
            while now() < end {
                let owners: Vec<String> = (0..size).map(|key| format!("{number:08x}{:024x}", cycles + key)).collect();
                cycle(lane, &keys, &owners).await?;
                cycles += size;
            }
            Ok::<usize, Failure>(cycles)
        });
        let cycles: usize = try_join_all(cycles).await?.into_iter().sum();
        let figures = figures(&before, &redis.work(&[])?, cycles);
        Ok(Sample { acquisitions: cycles, figures, latencies: histogram() })
    })
}

/// Claims all of these keys, each for the owner of its place, then releases them: `SET NX PX`, then compare and delete, each a command of
/// its own in one pipeline.
async fn cycle(bare: &Bare, keys: &[String], owners: &[String]) -> Result<()> {
    let claims = bare.client.pipeline();
    for (key, owner) in keys.iter().zip(owners) {
        let lease = Some(Expiration::PX(LEASE_MILLIS));
        let () = claims.set(&**key, &**owner, lease, Some(SetOptions::NX), false).await?;
    }
    let granted: Vec<Option<String>> = claims.all().await?;
    let releases = bare.client.pipeline();
    for (key, owner) in keys.iter().zip(owners) {
        let evalsha = CustomCommand::new_static("EVALSHA", ClusterHash::FirstKey, false);
        let () = releases.custom(evalsha, vec![&*bare.compare_and_delete, "1", &**key, &**owner]).await?;
    }
    let deleted: Vec<u64> = releases.all().await?;
    let all = granted.iter().all(Option::is_some) && deleted.iter().all(|keys| *keys == 1);
    if all { Ok(()) } else { Err("a key that nobody else wants was not ours".into()) }
}

/// Workload Q-down: two of five nodes are stopped (SIGSTOP), so that they neither answer nor refuse.
pub(crate) fn two_down(nodes: &Store, pace: Pace) -> Result<Report> {
    let job = Job::of(nodes.locks(Kind::Redlock), Shape::own_keys(1));
    let sides = vec![
        Side::new(Role::Floor, "all five up", |pace| job.run(pace)),
        Side::new(Role::Ours, OURS, |pace| nodes.with_two_stopped(|stop| job.run_after(pace, stop))),
    ];
    let rounds = interleave(pace, sides)?;
    let row = |figure, aims: &[Aim]| {
        rounds.row(&format!("2 of 5 nodes stopped (floor: none), 1 task: {figure}"), OURS, figure, aims)
    };
    Ok(Report::of([row(P99, &[Aim::WithinFloor(1.2)]), row(P50, &[]), row(PER_SECOND, &[])]))
}

/// Of workload F1: the time from the start of the `leasehold` program to its end, with a command under the lock that does nothing.
pub(crate) fn beside_flock(folder: &Store, pace: Pace) -> Result<Report> {
    let Ok(program) = program() else {
        return Ok(Report::absent("the program: not built; cargo xtask bench builds it"));
    };
    if Command::new("flock").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok(Report::absent("the program: no flock(1) to compare with"));
    }
    let folder = folder.url();
    let (mut leasehold, mut flock) = (Command::new(program), Command::new("flock"));
    leasehold.args(["--backend", &format!("file:{folder}/of-programs"), "run", "program", "--", "true"]);
    flock.args([&*format!("{folder}/program"), "true"]);
    let sides = vec![
        Side::new(Role::Ours, OURS, |_| starts(&mut leasehold)),
        Side::new(Role::Floor, "flock(1)", |_| starts(&mut flock)),
    ];
    let what = "`leasehold run k -- true` (floor: flock(1)): p50 to its end, µs";
    Ok(Report::of([interleave(pace, sides)?.row(what, OURS, P50, &[Aim::WithinFloor(1.3)])]))
}

fn starts(command: &mut Command) -> Result<Sample> {
    const STARTS: usize = 25;
    let mut latencies = histogram();
    for _ in 0..STARTS {
        let begin = now();
        let ended = command.stdin(Stdio::null()).status()?;
        latencies.saturating_record(now() - begin);
        if !ended.success() {
            return Err("the command failed".into());
        }
    }
    Ok(Sample::timed(STARTS, latencies))
}
