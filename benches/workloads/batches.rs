//! S: what a cycle of claim and release costs a Redis server, by how many are sent together.

use std::collections::BTreeMap;

use fred::clients::Client;
use fred::interfaces::{ClientLike, KeysInterface, LuaInterface};
use fred::types::{ClusterHash, CustomCommand, Expiration, SetOptions};
use futures::future::{BoxFuture, try_join_all};
use leasehold_testkit::first_version::{BATCH, REDIS_SINGLE, TRY_ACQUIRE};

use crate::contenders::bare::{COMPARE_AND_DELETE, connect};
use crate::harness::{Aim, Role, Side, interleave};
use crate::job::{Job, runtime};
use crate::load::{Result, now};
use crate::log::{SERVER_CPU, Sample, histogram};
use crate::pace::Pace;
use crate::report::Report;
use crate::servers::{Redis, with_server_work};

const OURS: &str = "redis-single";
const LEASE_MILLIS: i64 = 30_000;

/// Workload S. Ours are tasks that each have a key of their own, and go to the server as the client sends them: for batches of
/// some size twice as many tasks, because it has two batches on their way. So have the others, each always full.
pub(crate) fn by_size(pace: Pace) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent("S", "no redis-server")) };
    let mut report = Report::default();
    for (size, lanes) in [(1, 1), (8, 2), (32, 2), (64, 2)] {
        let redis = &redis;
        let batches = Batches { size, lanes };
        let ours = Job::own_keys(redis.ours(), size * lanes);
        let sides = vec![
            with_server_work(Role::Ours, OURS, ours, || redis.work()),
            Side::new(Role::Floor, "bare commands", move |pace| batches.measure::<Bare>(redis, pace)),
            Side::new(Role::Peer, "the scripts before", move |pace| batches.measure::<Before>(redis, pace)),
        ];
        let rounds = interleave(pace, sides)?.least(SERVER_CPU);
        let what = format!("batches of {size} (ours: {} tasks): least server CPU, µs/cycle", size * lanes);
        let aims: &[Aim] = if size == 32 { &[Aim::WithinPeer(0.5)] } else { &[] };
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

/// A lock that is claimed and released in batches.
trait Lane: Sized + Send {
    async fn connect(url: &str) -> Result<Self>;
    /// Claims all of these keys, each for the owner of its place, then releases them.
    fn cycle<'l>(&'l self, keys: &'l [Names], owners: &'l [String]) -> BoxFuture<'l, Result<()>>;
}

/// What is kept for a key, as `redis-single` names it.
#[derive(Debug)]
struct Names {
    lock: String,
    fence: String,
    line: String,
    channel: String,
}

impl Names {
    fn of(lane: usize, number: usize) -> Self {
        let name = |part: &str| format!("{{before:bench/{lane}/{number}}}:{part}");
        Self { lock: name("lock"), fence: name("fence"), line: name("line"), channel: name("free") }
    }
}

impl Batches {
    /// One round: the server's processor time for all cycles.
    fn measure<L: Lane>(self, redis: &Redis, pace: Pace) -> Result<Sample> {
        let url = redis.url();
        runtime(0)?.block_on(async {
            let lanes = try_join_all((0..self.lanes).map(|_| L::connect(&url))).await?;
            let before = redis.work()?;
            let end = now() + (pace.warm_up_millis + pace.window_millis) * 1_000_000;
            let cycles = lanes.iter().enumerate().map(|(number, lane)| self.run(lane, number, end));
            let cycles: usize = try_join_all(cycles).await?.into_iter().sum();
            let figures = BTreeMap::from(redis.work()?.per_cycle(before, cycles));
            Ok(Sample { acquisitions: cycles, figures, latencies: histogram() })
        })
    }

    async fn run<L: Lane>(self, lane: &L, number: usize, end: u64) -> Result<usize> {
        let keys: Vec<Names> = (0..self.size).map(|key| Names::of(number, key)).collect();
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

impl Lane for Bare {
    async fn connect(url: &str) -> Result<Self> {
        let client = connect(url).await?;
        let compare_and_delete = client.script_load(COMPARE_AND_DELETE).await?;
        Ok(Self { client, compare_and_delete })
    }

    fn cycle<'l>(&'l self, keys: &'l [Names], owners: &'l [String]) -> BoxFuture<'l, Result<()>> {
        Box::pin(async move {
            let claims = self.client.pipeline();
            for (names, owner) in keys.iter().zip(owners) {
                let lease = Some(Expiration::PX(LEASE_MILLIS));
                let () = claims.set(&*names.lock, &**owner, lease, Some(SetOptions::NX), false).await?;
            }
            let granted: Vec<Option<String>> = claims.all().await?;
            let releases = self.client.pipeline();
            for (names, owner) in keys.iter().zip(owners) {
                let evalsha = CustomCommand::new_static("EVALSHA", ClusterHash::FirstKey, false);
                let words = vec![&*self.compare_and_delete, "1", &*names.lock, &**owner];
                let () = releases.custom(evalsha, words).await?;
            }
            let deleted: Vec<u64> = releases.all().await?;
            let all = granted.iter().all(Option::is_some) && deleted.iter().all(|keys| *keys == 1);
            if all { Ok(()) } else { Err("a key that nobody else wants was not ours".into()) }
        })
    }
}

/// The scripts that `redis-single` had before batches were made for claims and releases, and what it sent with them.
struct Before {
    client: Client,
    claim: String,
    release: String,
    batch: String,
}

/// How many keys and arguments each function of a batch takes.
const FUNCTIONS: &str = "local functions = { try_acquire = { try_acquire, 3, 5 }, release = { release, 3, 2 } }\n";

impl Before {
    const COUNTER_MILLIS: &str = "604800000";
    const METADATA: &str = "}";
    const INBOX: &str = "!{leasehold:}:inbox:00112233445566778899aabbccddeeff";

    fn claim<'l>(names: &'l Names, owner: &'l str) -> ([&'l str; 3], [&'l str; 5]) {
        let keys = [&*names.lock, &names.fence, &names.line];
        (keys, [owner, "30000", Self::COUNTER_MILLIS, Self::METADATA, Self::INBOX])
    }

    fn release<'l>(names: &'l Names, owner: &'l str) -> ([&'l str; 3], [&'l str; 2]) {
        ([&*names.lock, &names.fence, &names.line], [owner, &names.channel])
    }

    /// Runs one function alone, or several as a batch, and looks for this word at the beginning of each answer.
    async fn step<const N: usize>(
        &self,
        (name, alone): (&str, &str),
        steps: Vec<([&str; 3], [&str; N])>,
        expected: &str,
    ) -> Result<()> {
        let answers: Vec<String> = match steps.as_slice() {
            [(keys, arguments)] => vec![self.client.evalsha(alone, keys.to_vec(), arguments.to_vec()).await?],
            several => {
                let keys: Vec<&str> = several.iter().flat_map(|(keys, _)| *keys).collect();
                let words = several.iter().flat_map(|(_, arguments)| std::iter::once(name).chain(*arguments));
                self.client.evalsha(self.batch.as_str(), keys, words.collect::<Vec<&str>>()).await?
            }
        };
        match answers.iter().find(|answer| !answer.starts_with(expected)) {
            Some(other) => Err(format!("a script from before answered {other}").into()),
            None => Ok(()),
        }
    }
}

impl Lane for Before {
    async fn connect(url: &str) -> Result<Self> {
        let client = connect(url).await?;
        let load = async |end: &str| -> Result<String> { Ok(client.script_load(REDIS_SINGLE.to_owned() + end).await?) };
        let claim = load(TRY_ACQUIRE).await?;
        let release = load("return release(0, 0)\n").await?;
        let batch = load(&[FUNCTIONS, BATCH].concat()).await?;
        Ok(Self { client, claim, release, batch })
    }

    fn cycle<'l>(&'l self, keys: &'l [Names], owners: &'l [String]) -> BoxFuture<'l, Result<()>> {
        Box::pin(async move {
            let claims = keys.iter().zip(owners).map(|(names, owner)| Self::claim(names, owner));
            self.step(("try_acquire", &self.claim), claims.collect(), "granted").await?;
            let releases = keys.iter().zip(owners).map(|(names, owner)| Self::release(names, owner));
            self.step(("release", &self.release), releases.collect(), "held").await
        })
    }
}
