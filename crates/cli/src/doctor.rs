use std::fmt::Write;
use std::time::Duration;

use leasehold_core::{Clock, LockKey, LockOptions, Wait};

use crate::admin::print;
use crate::args::StoreArgs;
use crate::choice::{Choice, choose};
use crate::duration::spoken;
use crate::exit::Failure;
use crate::kind::{Finding, Health};
use crate::store::Store;

/// A default lease must outlast many round trips: one to grant it, and several tries to renew it.
const SLOW: Duration = Duration::from_secs(1);

/// Nobody else's.
const KEY: &str = "leasehold doctor";

/// `leasehold doctor`: looks for what makes this store unsafe, one line each, with the cure.
///
/// Answers 0 if all is well, 1 for warnings and 2 for errors.
pub(crate) async fn doctor(args: &StoreArgs) -> Result<u8, Failure> {
    let choice = choose(args)?;
    tell(&examine(&choice).await)
}

/// `leasehold heal`: lets nodes that lost their data vote again.
pub(crate) async fn heal(args: &StoreArgs) -> Result<u8, Failure> {
    let choice = choose(args)?;
    let Some(nodes) = choice.kind.nodes else {
        return Err(Failure::Usage(format!("the {} store has no nodes to heal", choice.kind.name)));
    };
    tell(&(nodes.heal)(choice.address.expose()).await?)
}

/// One line each; the worst is the exit code.
fn tell(findings: &[Finding]) -> Result<u8, Failure> {
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
    store.close().await;
    findings
}

/// Does what every program does, on a key of its own: only that shows what a server refuses. What it leaves is what
/// any key leaves that was locked once.
async fn lock_and_release(store: &Store) -> leasehold_core::Result<()> {
    let key = LockKey::new(KEY)?;
    let options = LockOptions::new().ttl(Duration::from_secs(10)).label("leasehold doctor");
    let [patient, brief] = [2000, 200].map(|wait| options.clone().wait(Wait::UpTo(Duration::from_millis(wait))));
    // Held by another, it is held by another doctor, who sees the same.
    if let Some(guard) = store.locker.acquire(&key, &patient).await? {
        if let Some(again) = store.locker.acquire(&key, &brief).await? {
            again.release().await?;
        }
        guard.renew().await?;
        guard.release().await?;
    }
    if let Some(readers) = &store.readers
        && let Some(guard) = readers.acquire_read(&key, &patient).await?
    {
        guard.renew().await?;
        guard.release().await?;
    }
    Ok(())
}

/// The shortest of three questions about a key that nobody locks.
async fn round_trip(store: &Store) -> Result<Duration, Failure> {
    let (clock, key) = (Clock::system(), LockKey::new(KEY)?);
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        let asked = clock.now();
        store.admin.inspect(&key).await?;
        shortest = shortest.min(clock.now().since(asked));
    }
    Ok(shortest)
}
