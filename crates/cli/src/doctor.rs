use std::fmt::Write;
use std::time::Duration;

use leasehold::{Admin, Clock, Finding, Health, LockKey, LockOptions, Locker, Locks, Wait};

use crate::admin::print;
use crate::args::StoreArgs;
use crate::choice::{Choice, choose, close};
use crate::duration::spoken;
use crate::exit::Failure;

/// A round trip that takes longer is a warning. A default lease must outlast many round trips: one to grant it, and several
/// attempts to renew it.
const SLOW: Duration = Duration::from_secs(1);

/// The key of `doctor`, which no other program uses.
const KEY: &str = "leasehold doctor";

/// `leasehold doctor`: checks the store, and prints one line for each check, with advice for what is wrong.
///
/// Returns the exit code: 0 if all is well, 1 for warnings, 2 for errors.
pub(crate) async fn doctor(args: &StoreArgs) -> Result<u8, Failure> {
    let choice = choose(args)?;
    print_findings(&examine(&choice).await)
}

/// `leasehold heal`: lets nodes that lost their data vote again.
pub(crate) async fn heal(args: &StoreArgs) -> Result<u8, Failure> {
    let choice = choose(args)?;
    let Some(nodes) = choice.kind.nodes else {
        return Err(Failure::Usage(format!("the {} store has no nodes to heal", choice.kind.name)));
    };
    print_findings(&(nodes.heal)(choice.address.expose()).await?)
}

/// Prints the findings, one line each. The worst one is the exit code.
fn print_findings(findings: &[Finding]) -> Result<u8, Failure> {
    let mut text = String::new();
    for finding in findings {
        let _ = writeln!(text, "{:<8}{}", finding.health.as_str(), finding.text);
    }
    print(&text)?;
    Ok(findings.iter().map(|finding| finding.health as u8).max().unwrap_or(0))
}

async fn examine(choice: &Choice) -> Vec<Finding> {
    let store = match choice.connect().await {
        Ok(store) => store,
        Err(error) => {
            let failure = Failure::Store(error);
            let cure = failure.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            return vec![Finding { health: Health::Error, text: format!("{failure}{cure}") }];
        }
    };
    let mut findings = vec![Finding { health: Health::Well, text: format!("{} can be opened", choice.kind.name) }];
    findings.push(match round_trip(&store).await {
        Ok(took) if took < SLOW => Finding { health: Health::Well, text: format!("a round trip takes {took:.1?}") },
        Ok(took) => Finding {
            health: Health::Warning,
            text: format!("a round trip takes {}: use a --ttl of many times that", spoken(took)),
        },
        Err(failure) => Finding { health: Health::Error, text: failure.to_string() },
    });
    findings.push(match lock_and_release(&store).await {
        Ok(()) => {
            Finding { health: Health::Well, text: "a lock can be taken, waited for, renewed and released".into() }
        }
        Err(error) => {
            let text = format!("{}: {}", Failure::Store(error), choice.kind.cure);
            Finding { health: Health::Error, text }
        }
    });
    if let Some(examine) = choice.kind.examine {
        match examine(choice.address.expose()).await {
            Ok(warnings) => {
                findings.extend(warnings.into_iter().map(|text| Finding { health: Health::Warning, text }));
            }
            Err(error) => findings.push(Finding { health: Health::Error, text: Failure::Store(error).to_string() }),
        }
    }
    if let Some(nodes) = choice.kind.nodes {
        match (nodes.states)(choice.address.expose()).await {
            Ok(states) => findings.extend(states),
            Err(error) => findings.push(Finding { health: Health::Error, text: Failure::Store(error).to_string() }),
        }
    }
    close(&store).await;
    findings
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
    let (clock, key) = (Clock::system(), LockKey::new(KEY)?);
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        let asked = clock.now();
        store.inspect(&key).await?;
        shortest = shortest.min(clock.now().since(asked));
    }
    Ok(shortest)
}
