//! S: what a cycle of claim and release costs a Redis server, by how many are sent together.

use fred::clients::Client;
use fred::interfaces::{ClientLike, KeysInterface, LuaInterface};
use fred::types::{ClusterHash, CustomCommand, Expiration, SetOptions};
use futures::future::try_join_all;

use crate::contenders::Kind;
use crate::contenders::bare::{COMPARE_AND_DELETE, connect};
use crate::harness::{Aim, Role, Side, interleave};
use crate::job::{Job, Shape, runtime};
use crate::load::{Result, now};
use crate::log::{SERVER_CPU, Sample, histogram};
use crate::pace::Pace;
use crate::report::Report;
use crate::servers::Store;
use crate::work::Work;

const OURS: &str = "redis-single";
const LEASE_MILLIS: i64 = 30_000;

/// Workload S. Ours are tasks that each have a key of their own, and go to the server as the client sends them: for batches of
/// some size twice as many tasks, because it has two batches on their way. So have the bare commands, each always full.
pub(crate) fn by_size(redis: &Store, pace: Pace) -> Result<Report> {
    let work = || redis.work(&[])?.ok_or_else(|| "Redis does not tell what it has done".into());
    let mut report = Report::default();
    let batches: [(_, _, &[Aim]); 4] =
        [(1, 1, &[Aim::WithinFloor(2.0)]), (8, 2, &[]), (32, 2, &[Aim::WithinFloor(1.1)]), (64, 2, &[])];
    for (size, lanes, aims) in batches {
        let batches = Batches { size, lanes };
        let job = Job::of(redis.locks(Kind::RedisSingle), Shape::own_keys(size * lanes));
        let ours = |pace| redis.counted(&job, &[], pace);
        let bare = |pace| batches.measure(&redis.url(), &work, pace);
        let sides = vec![Side::new(Role::Ours, OURS, ours), Side::new(Role::Floor, "bare commands", bare)];
        let rounds = interleave(pace, sides)?.least(SERVER_CPU);
        let what = format!("batches of {size} (ours: {} tasks): least server CPU, µs/cycle", size * lanes);
        report.push(rounds.row("S", &what, OURS, SERVER_CPU, aims));
    }
    Ok(report)
}

/// How many cycles are sent together, and how many such batches are on their way.
#[derive(Clone, Copy, Debug)]
struct Batches {
    size: usize,
    lanes: usize,
}

impl Batches {
    /// One round: the server's processor time for all cycles.
    fn measure(self, url: &str, work: &impl Fn() -> Result<Work>, pace: Pace) -> Result<Sample> {
        runtime(0)?.block_on(async {
            let lanes = try_join_all((0..self.lanes).map(|_| Bare::connect(url))).await?;
            let before = work()?;
            let end = now() + (pace.warm_up_millis + pace.window_millis) * 1_000_000;
            let cycles = lanes.iter().enumerate().map(|(number, lane)| self.run(lane, number, end));
            let cycles: usize = try_join_all(cycles).await?.into_iter().sum();
            let figures = work()?.figures(before, cycles);
            Ok(Sample { acquisitions: cycles, figures, latencies: histogram() })
        })
    }

    async fn run(self, lane: &Bare, number: usize, end: u64) -> Result<usize> {
        let keys: Vec<String> = (0..self.size).map(|key| format!("{{bare:bench/{number}/{key}}}:lock")).collect();
        let mut cycles = 0;
        while now() < end {
            let owners: Vec<String> = (0..self.size).map(|key| format!("{number:08x}{:024x}", cycles + key)).collect();
            lane.cycle(&keys, &owners).await?;
            cycles += self.size;
        }
        Ok(cycles)
    }
}

/// `SET NX PX`, then compare and delete, each a command of its own in one pipeline.
struct Bare {
    client: Client,
    compare_and_delete: String,
}

impl Bare {
    async fn connect(url: &str) -> Result<Self> {
        let client = connect(url).await?;
        let compare_and_delete = client.script_load(COMPARE_AND_DELETE).await?;
        Ok(Self { client, compare_and_delete })
    }

    /// Claims all of these keys, each for the owner of its place, then releases them.
    async fn cycle(&self, keys: &[String], owners: &[String]) -> Result<()> {
        let claims = self.client.pipeline();
        for (key, owner) in keys.iter().zip(owners) {
            let lease = Some(Expiration::PX(LEASE_MILLIS));
            let () = claims.set(&**key, &**owner, lease, Some(SetOptions::NX), false).await?;
        }
        let granted: Vec<Option<String>> = claims.all().await?;
        let releases = self.client.pipeline();
        for (key, owner) in keys.iter().zip(owners) {
            let evalsha = CustomCommand::new_static("EVALSHA", ClusterHash::FirstKey, false);
            let words = vec![&*self.compare_and_delete, "1", &**key, &**owner];
            let () = releases.custom(evalsha, words).await?;
        }
        let deleted: Vec<u64> = releases.all().await?;
        let all = granted.iter().all(Option::is_some) && deleted.iter().all(|keys| *keys == 1);
        if all { Ok(()) } else { Err("a key that nobody else wants was not ours".into()) }
    }
}
