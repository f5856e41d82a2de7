use std::fmt::Write;
use std::time::Duration;

use leasehold::{
    Admin, Capability, Finding, Health, LockKey, LockOptions, Locker, LockerExt, Locks, RwLockerExt, Wait,
};
use serde::Serialize;

use crate::admin::print;
use crate::args::{DoctorArgs, StoreArgs};
use crate::choice::{Choice, Purpose, choose, close};
use crate::duration::spoken;
use crate::exit::Failure;
use crate::lease_advice::ttl_option;
use crate::stopwatch::Stopwatch;
use crate::wording::json;

/// A round trip that takes longer is a warning.
const SLOW: Duration = Duration::from_secs(1);

/// The key of `doctor`, which no other program uses.
const KEY: &str = "leasehold doctor";

/// `leasehold doctor`: checks the store, and prints what each check found, with the cure of what is wrong.
///
/// Returns the exit code: 0 if all is well, 1 for warnings, 2 for errors.
pub(crate) async fn doctor(args: &DoctorArgs, store: &StoreArgs) -> Result<u8, Failure> {
    let choice = choose(store)?;
    let (backend, found) = (choice.shown(), examine(&choice, args.ttl).await);
    let (exit_code, findings) = (exit_code(&found), found.iter().map(fields).collect());
    print(&if args.json {
        json(&Report { backend: &backend, exit_code, findings })
    } else {
        format!("store   {backend}\n{}", lines(&found))
    })?;
    Ok(exit_code)
}

/// `leasehold heal`: lets nodes that lost their data vote again.
pub(crate) async fn heal(args: &StoreArgs) -> Result<u8, Failure> {
    let choice = choose(args)?;
    let Some(nodes) = choice.kind.nodes else {
        return Err(Failure::Usage(format!("the {} store has no nodes to heal", choice.kind.name)));
    };
    let findings = (nodes.heal)(choice.address.expose()).await?;
    print(&lines(&findings))?;
    Ok(exit_code(&findings))
}

/// What `doctor` found at a store, as in the JSON output. The store's name has no credentials.
#[derive(Serialize)]
struct Report<'f> {
    backend: &'f str,
    exit_code: u8,
    findings: Vec<Fields<'f>>,
}

#[derive(Serialize)]
struct Fields<'f> {
    id: &'f str,
    health: &'f str,
    text: &'f str,
    cure: Option<&'f str>,
}

fn fields(finding: &Finding) -> Fields<'_> {
    let Finding { id, health, text, cure, .. } = finding;
    Fields { id, health: health.as_str(), text, cure: cure.as_deref() }
}

/// The findings for people: a line for each, and one for its cure.
fn lines(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { id, health, text: found, cure, .. } in findings {
        let _ = writeln!(text, "{:<8}{id}: {found}", health.as_str());
        if let Some(cure) = cure {
            let _ = writeln!(text, "  cure  {cure}");
        }
    }
    text
}

/// The exit code for the worst finding.
fn exit_code(findings: &[Finding]) -> u8 {
    match findings.iter().map(|finding| finding.health).max() {
        Some(Health::Warning) => 1,
        Some(Health::Error) => 2,
        _ => 0,
    }
}

async fn examine(choice: &Choice, ttl: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    let opened = choice.connect(Purpose::Lock).await;
    let could_open = opened.is_ok();
    match opened.map_err(Failure::Store) {
        Ok(store) => {
            findings.push(Finding::well("open", format!("{} can be opened", choice.kind.name)));
            findings.extend(use_store(choice, &store, ttl).await);
            close(&store).await;
        }
        Err(failure) => {
            let (finding, hint) = (Finding::error("open", failure.to_string()), failure.hint());
            findings.push(hint.map_or(finding.clone(), |hint| finding.cure(hint)));
        }
    }
    let mut add = |found: leasehold::Result<Vec<Finding>>| match found {
        Ok(found) => findings.extend(found),
        // Without a connection that is the same error once more.
        Err(error) if could_open => {
            findings.push(Finding::error("examine", Failure::Store(error).to_string()).cure(choice.kind.cure));
        }
        Err(_) => {}
    };
    if let Some(examine) = choice.kind.examine {
        add(examine(choice.address.expose()).await);
    }
    if let Some(nodes) = choice.kind.nodes {
        add((nodes.states)(choice.address.expose()).await);
    }
    findings
}

/// What using the store as every program does shows.
async fn use_store(choice: &Choice, store: &Locks, ttl: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    match round_trip(store).await {
        Ok(took) => {
            let text = format!("a round trip takes {took:.1?}");
            findings.push(if took < SLOW {
                Finding::well("round-trip", text)
            } else {
                Finding::warning("round-trip", text).cure(ttl_option(took))
            });
            if store.capabilities().has(Capability::Lease) {
                findings.push(lease(ttl, took));
            }
        }
        Err(failure) => findings.push(Finding::error("round-trip", failure.to_string()).cure(choice.kind.cure)),
    }
    findings.push(match lock_and_release(store).await {
        Ok(()) => Finding::well("lock", "a lock can be taken, waited for, renewed and released"),
        Err(error) => Finding::error("lock", Failure::Store(error).to_string()).cure(choice.kind.cure),
    });
    findings
}

/// Whether a lease of this length can be renewed where a round trip takes so long.
fn lease(ttl: Duration, round_trip: Duration) -> Finding {
    // The shortest lease in which a renewal, and one more try, can be answered.
    let fewest = round_trip.saturating_mul(3);
    let (shown, trips) = (spoken(ttl), spoken(fewest));
    if ttl < fewest {
        let text =
            format!("a lease of {shown} is shorter than three round trips ({trips}), and may end before it is renewed");
        Finding::warning("ttl", text).cure(ttl_option(round_trip))
    } else {
        Finding::well("ttl", format!("a lease of {shown} is longer than three round trips"))
    }
}

/// Acquires, waits for, renews and releases a lock on a key of its own: only that shows which operations a server refuses.
/// It leaves in the store what any key leaves that was locked once.
async fn lock_and_release(store: &Locks) -> leasehold::Result<()> {
    let key = LockKey::new(KEY)?;
    let options = LockOptions::new().ttl(Duration::from_secs(10)).label("leasehold doctor");
    let [patient, brief] = [2000, 200].map(|wait| options.clone().wait(Wait::UpTo(Duration::from_millis(wait))));
    // If another holds the key, that is another `doctor`, which makes the same checks.
    if let Some(guard) = store.acquire(&key, &patient).await? {
        if let Some(again) = store.acquire(&key, &brief).await? {
            again.release().await?;
        }
        guard.renew().await?;
        guard.release().await?;
    }
    if let Some(readers) = store.rw()
        && let Some(guard) = readers.acquire_read(&key, &patient).await?
    {
        guard.renew().await?;
        guard.release().await?;
    }
    Ok(())
}

/// The shortest time of three requests about the key of `doctor`.
async fn round_trip(store: &Locks) -> Result<Duration, Failure> {
    let key = LockKey::new(KEY)?;
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        let asked = Stopwatch::start();
        store.inspect(&key).await?;
        shortest = shortest.min(asked.read());
    }
    Ok(shortest)
}
