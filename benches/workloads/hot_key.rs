//! H1, H8, H8h: many tasks acquire one key, in one process and in eight.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::contenders::Locks;
use crate::harness::{Aim, Role, Rounds, Side, interleave};
use crate::job::Job;
use crate::load::Result;
use crate::log::{COMMANDS, CPU, HAND_OFFS, HOLD, JAIN, Keys, OF_THE_IDEAL, P50, P99, PER_SECOND, STARVED, Sample};
use crate::pace::Pace;
use crate::peers;
use crate::report::{Plot, Report};
use crate::servers::Redis;

const OURS: &str = "redis-single";
const NO_LOCAL_HANDOFF: &str = "redis-single, local hand-off off";
const HOLD_FOR: Duration = Duration::from_millis(1);

/// Workload H1: 64 tasks of one process.
pub(crate) fn one_process(pace: Pace) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent("H1", "no redis-server")) };
    let sides = vec![
        counted(&redis, Role::Ours, OURS, BY_SCRIPTS, Job::hot_key(redis.ours(), 64)),
        Side::job(Role::Floor, "bare fred behind a queue", Job::hot_key(Locks::BareQueued { url: redis.url() }, 64)),
        counted(&redis, Role::Peer, "rslock", BY_RSLOCK, Job::hot_key(redis.rslock(), 64)),
    ];
    let rounds = interleave(pace, sides)?;
    let row =
        |what: &str, figure, aims: &[Aim]| rounds.row("H1", &format!("1 × 64 on a key: {what}"), OURS, figure, aims);
    Ok(Report::of([
        row("acquisitions/s", PER_SECOND, &[Aim::PeerTimes(30.0)]),
        // Not less by more than 5 % than it was.
        row(HAND_OFFS, HAND_OFFS, &[Aim::PeerTimes(945.0)]),
        row(JAIN, JAIN, &[Aim::AtLeast(0.99)]),
        row(COMMANDS, COMMANDS, &[]),
        row(CPU, CPU, &[]),
    ]))
}

/// Workload H8: 8 tasks in each of 8 processes.
pub(crate) fn eight_processes(pace: Pace) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent("H8", "no redis-server")) };
    let eight = |locks| Job::hot_key(locks, 8).processes(8);
    let without = Locks::RedisSingle { url: redis.url(), local_handoff: false };
    let tuned = Locks::Rslock { urls: vec![redis.url()], retry_millis: 5 };
    let mut sides = vec![
        Side::new(Role::Floor, "PING", |pace| ping(&redis, pace)),
        counted(&redis, Role::Ours, OURS, BY_SCRIPTS, eight(redis.ours())),
        counted(&redis, Role::Ours, NO_LOCAL_HANDOFF, BY_SCRIPTS, eight(without)),
        counted(&redis, Role::Peer, "rslock", BY_RSLOCK, eight(redis.rslock())),
        counted(&redis, Role::Peer, "rslock, retry 5 ms", BY_RSLOCK, eight(tuned)),
    ];
    let (peers, absent) = peers::found();
    for peer in &peers {
        let job = peer.job(&redis.url(), Keys::Shared, 8).processes(8);
        sides.push(counted(&redis, Role::Peer, peer.name, peer.sends, job));
    }
    let rounds = interleave(pace, sides)?;
    let row = |what: &str, ours, figure, aims: &[Aim]| {
        rounds.row("H8", &format!("8 × 8 on a key: {what}"), ours, figure, aims)
    };
    let mut report = Report::of([
        row("acquisitions/s", OURS, PER_SECOND, &[Aim::PeerTimes(4.0)]),
        // Not less by more than 5 % than it was.
        row(HAND_OFFS, OURS, HAND_OFFS, &[Aim::PeerTimes(139.0)]),
        row("p99 of a hand-off, µs (floor: p50 of PING)", OURS, P99, &[Aim::WithinFloor(4.0)]),
        row(COMMANDS, OURS, COMMANDS, &[Aim::AtMost(0.3)]),
        row("the same, local hand-off off", NO_LOCAL_HANDOFF, COMMANDS, &[Aim::AtMost(2.05)]),
        row("acquisitions/s, local hand-off off", NO_LOCAL_HANDOFF, PER_SECOND, &[Aim::PeerTimes(0.9)]),
        row("p50 of a hand-off, local hand-off off, µs", NO_LOCAL_HANDOFF, P50, &[Aim::WithinPeer(1.2)]),
        row(JAIN, OURS, JAIN, &[Aim::AtLeast(0.99)]),
        row(STARVED, OURS, STARVED, &[Aim::AtMost(0.0)]),
        row(CPU, OURS, CPU, &[]),
    ]);
    report.absent_peers(&absent);
    report.draw_hand_offs(&rounds);
    Ok(report)
}

/// Workload H8h: 1 ms of work under the lock, by 64 tasks of one process and by 8 tasks in each of 8 processes.
pub(crate) fn with_work(pace: Pace) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent("H8h", "no redis-server")) };
    let mut report = Report::default();
    for (processes, tasks, least) in [(1, 64, 0.95), (8, 8, 0.85)] {
        let job = |locks| Job::hot_key(locks, tasks).processes(processes).hold(HOLD_FOR);
        let against_ideal = |role, name, job: Job| {
            let redis = &redis;
            Side::new(role, name, move |pace| Ok(of_the_ideal(job.run(pace)?, &ping(redis, pace)?)))
        };
        let mut sides = vec![
            against_ideal(Role::Ours, OURS, job(redis.ours())),
            against_ideal(Role::Peer, "rslock", job(redis.rslock())),
        ];
        let (peers, absent) = peers::found();
        for peer in peers.iter().filter(|_| processes > 1 && !pace.quick) {
            let job = peer.job(&redis.url(), Keys::Shared, tasks).processes(processes).hold(HOLD_FOR);
            sides.push(against_ideal(Role::Peer, peer.name, job));
        }
        let rounds = interleave(pace, sides)?;
        let row = |figure, aims: &[Aim]| {
            rounds.row("H8h", &format!("{processes} × {tasks}, 1 ms of work: {figure}"), OURS, figure, aims)
        };
        report.push(row(OF_THE_IDEAL, &[Aim::AtLeast(least)]));
        report.push(row(HAND_OFFS, &[]));
        report.push(row(JAIN, &[]));
        report.push(row(STARVED, &[Aim::AtMost(0.0)]));
        if processes > 1 {
            report.absent_peers(&absent);
        }
    }
    Ok(report)
}

/// The commands that the client of `redis-single` sends. None of its scripts runs any of these.
const BY_SCRIPTS: &[&str] = &["evalsha", "eval", "fcall", "wait"];
/// The commands that `rslock` sends. Its scripts only read and delete.
const BY_RSLOCK: &[&str] = &["set", "evalsha", "eval"];

/// A side whose commands are counted at the server.
fn counted<'a>(redis: &'a Redis, role: Role, name: &str, sends: &'a [&'a str], job: Job) -> Side<'a> {
    Side::new(role, name, move |pace| {
        let before = redis.calls(sends)?;
        let mut sample = job.run(pace)?;
        let sent = redis.calls(sends)? - before;
        sample.figures.insert(COMMANDS, sent as f64 / sample.acquisitions as f64);
        Ok(sample)
    })
}

/// A round trip, as the p99 of a hand-off is compared with it: by its median.
fn ping(redis: &Redis, pace: Pace) -> Result<Sample> {
    let pace = Pace { warm_up_millis: 50, window_millis: 200, ..pace };
    let sample = Job::own_keys(Locks::Ping { url: redis.url() }, 1).run(pace)?;
    Ok(Sample { figures: BTreeMap::from([(P99, sample.figures[P50])]), ..sample })
}

/// How near it came to a lock that loses one round trip between two holds. The hold is as long as the sleep took.
fn of_the_ideal(mut sample: Sample, ping: &Sample) -> Sample {
    let ideal = 1e6 / (sample.figures[HOLD] + ping.figures[P99]);
    sample.figures.insert(OF_THE_IDEAL, sample.figures[PER_SECOND] / ideal);
    sample
}

impl Report {
    fn draw_hand_offs(&mut self, rounds: &Rounds) {
        for (role, name) in rounds.names().filter(|(role, _)| *role != Role::Floor) {
            let latencies = rounds.latencies(name);
            let steps = (0..=200).map(|step| f64::from(step) / 200.0);
            let points = steps.map(|share| (latencies.value_at_quantile(share) as f64 / 1e3, share * 100.0));
            self.draw(Plot::LocalHandoff, (role, name), points);
        }
    }
}
