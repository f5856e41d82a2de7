//! MN: 10,000 leases renewed in batches, beside one statement for each.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use leasehold_core::{Attempt, Backend, Claim, GrantRef, LeaseStatus, LockKey, Mode, Renewal};
use leasehold_mysql_rw::MysqlRw;
use leasehold_mysql_unique::MysqlUnique;
use mysql_async::prelude::Queryable;

use super::rows::{Rows, on_each};
use crate::contenders::mysql::pool;
use crate::harness::{Aim, Role, Side, interleave};
use crate::job::runtime;
use crate::load::{Result, now};
use crate::log::{Sample, histogram};
use crate::pace::Pace;
use crate::report::Report;

const OURS: &str = "mysql-unique";
const WRITERS: &str = "mysql-rw, writers";
const READERS: &str = "mysql-rw, readers";
const RIVAL: &str = "one by one";
const NAMESPACE: &str = "renewals";
const LEASES: usize = 10_000;
const LEASE: Duration = Duration::from_secs(600);
const SERVER_CPU: &str = "server CPU, ms";
const ALL: &str = "all renewed, ms";
const LONGEST: &str = "the longest statement, ms";
/// The server's processor time comes in steps of 10 ms.
const TIMES: usize = 10;

/// Held by one client that is its own keeper.
pub(crate) fn ten_thousand(pace: Pace) -> Result<Report> {
    on_each("MN", |server, words| {
        let runtime = runtime(0)?;
        let url = server.url();
        let unique = runtime.block_on(MysqlUnique::builder().url(&url).namespace(NAMESPACE).backend())?;
        let rw = runtime.block_on(MysqlRw::builder().url(&url).namespace(NAMESPACE).backend())?;
        let leases = runtime.block_on(held(&unique, Mode::Exclusive))?;
        let writers = runtime.block_on(held(&rw, Mode::Exclusive))?;
        let readers = runtime.block_on(held(&rw, Mode::Shared))?;
        let pool = pool(&url)?;
        let measured = |times, renewed: &dyn Fn() -> Result<Sample>| {
            let before = server.cpu_millis()?;
            let sample = renewed()?;
            Ok(per_time(sample, server.cpu_millis()? - before, times))
        };
        let sides = vec![
            Side::new(Role::Ours, OURS, |_| measured(TIMES, &|| runtime.block_on(in_batches(&unique, &leases)))),
            Side::new(Role::Ours, WRITERS, |_| measured(TIMES, &|| runtime.block_on(in_batches(&rw, &writers)))),
            Side::new(Role::Ours, READERS, |_| measured(TIMES, &|| runtime.block_on(in_batches(&rw, &readers)))),
            Side::new(Role::Peer, RIVAL, |_| measured(1, &|| runtime.block_on(one_by_one(&pool, &leases)))),
        ];
        let rounds = interleave(Pace { rounds: pace.rounds.min(3), ..pace }, sides)?;
        let mut rows = Rows { id: "MN", words, rounds: &rounds };
        let mut all = vec![
            rows.of("10,000 leases renewed: server CPU, ms", OURS, SERVER_CPU, &[Aim::WithinPeer(1.0 / 15.0)]),
            rows.of("10,000 leases renewed: until all are, ms", OURS, ALL, &[]),
        ];
        for ours in [OURS, WRITERS, READERS] {
            let what = format!("10,000 leases renewed, {ours}: the longest statement, ms");
            all.push(rows.of(&what, ours, LONGEST, &[Aim::AtMost(10.0)]));
        }
        Ok(all)
    })
}

async fn held<B: Backend>(store: &B, mode: Mode) -> Result<Vec<GrantRef>> {
    let mut grants = Vec::with_capacity(LEASES);
    for some in (0..LEASES).collect::<Vec<_>>().chunks(256) {
        let taken = some.iter().map(|number| take(store, mode, format!("kept/{mode:?}/{number}"), LEASE));
        grants.extend(try_join_all(taken).await?);
    }
    Ok(grants)
}

/// A grant of this key, which is free.
pub(super) async fn take<B: Backend>(store: &B, mode: Mode, key: String, lease: Duration) -> Result<GrantRef> {
    let key = LockKey::new(key)?;
    let claim = Claim::new(&key, mode, lease);
    match store.try_acquire(&claim).await? {
        Attempt::Granted { epoch } => Ok(claim.grant(epoch)),
        busy => Err(format!("{} is not free: {busy:?}", claim.key).into()),
    }
}

async fn in_batches<B: Backend>(store: &B, grants: &[GrantRef]) -> Result<Sample> {
    let renewals: Vec<Renewal> = grants.iter().map(|grant| Renewal { grant: grant.clone(), ttl: LEASE }).collect();
    let mut latencies = histogram();
    for _ in 0..TIMES {
        for batch in renewals.chunks(store.renewal_batch()) {
            let begin = now();
            let answers = store.renew(batch, LEASE / 4).await;
            latencies.saturating_record(now() - begin);
            if !answers.iter().all(|answer| matches!(answer, Ok(LeaseStatus::Held))) {
                return Err("a lease was lost while it was kept".into());
            }
        }
    }
    Ok(Sample { acquisitions: LEASES * TIMES, figures: BTreeMap::new(), latencies })
}

/// On one connection, as a keeper would.
async fn one_by_one(pool: &mysql_async::Pool, grants: &[GrantRef]) -> Result<Sample> {
    let renew = "UPDATE leasehold_locks SET expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND \
                 WHERE name = ? AND owner = ? AND expires_at > UTC_TIMESTAMP(6)";
    let mut session = pool.get_conn().await?;
    let mut latencies = histogram();
    for grant in grants {
        let name = format!("{NAMESPACE}\0{}", grant.key);
        let begin = now();
        session.exec_drop(renew, (LEASE.as_micros() as u64, name, grant.owner.as_bytes())).await?;
        latencies.saturating_record(now() - begin);
        if session.affected_rows() != 1 {
            return Err("a lease was lost while it was kept".into());
        }
    }
    Ok(Sample { acquisitions: LEASES, figures: BTreeMap::new(), latencies })
}

fn per_time(mut sample: Sample, server_cpu: f64, times: usize) -> Sample {
    let total: u64 =
        sample.latencies.iter_recorded().map(|step| step.value_iterated_to() * step.count_at_value()).sum();
    sample.figures.insert(SERVER_CPU, server_cpu / times as f64);
    sample.figures.insert(ALL, total as f64 / 1e6 / times as f64);
    sample.figures.insert(LONGEST, sample.latencies.max() as f64 / 1e6);
    sample
}
