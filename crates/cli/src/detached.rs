use std::io::{self, Read, Write};
use std::time::Duration;

use leasehold::{
    Admin, DetachedLock, Error, ErrorKind, LockGuard, LockOptions, Locker, LockerExt, Locks, LossReason,
    ReleaseOutcome, Wait,
};

use crate::args::StoreArgs;
use crate::choice::{Purpose, can_detach, choose, close};
use crate::exit::Failure;
use crate::report::Report;
use crate::signals::Signals;
use crate::stopwatch::Stopwatch;
use crate::store_commands::{AcquireArgs, ReleaseArgs, RenewArgs, WaitArgs};
use crate::values::patience;
use crate::wording::default_label;

/// `leasehold wait`: asks until nobody holds the key. Returns the exit code.
pub(crate) async fn wait(args: &WaitArgs, store: &StoreArgs, report: Report) -> Result<u8, Failure> {
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);
    let mut signals = Signals::catch()?;
    let started = Stopwatch::start();
    let patience = patience(false, args.wait);
    let locks = signals.or(choose(store)?.connect_within(Purpose::Look, patience, report)).await??;
    let mut pause = Duration::from_millis(20);
    loop {
        let seen = signals.or(locks.inspect(&args.key)).await??;
        let waited = started.read();
        if seen.holders.is_empty() {
            close(&locks).await;
            return Ok(0);
        }
        let left = args.wait.map_or(Duration::MAX, |limit| limit.saturating_sub(waited));
        if left.is_zero() {
            return Err(Failure::Busy { key: args.key.clone(), waited, holders: Some(seen) });
        }
        signals.or(tokio::time::sleep(pause.min(left))).await?;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// `leasehold acquire`: takes a lock that outlives this program, and prints its text. Returns the exit code.
pub(crate) async fn acquire(args: &AcquireArgs, store: &StoreArgs, report: Report) -> Result<u8, Failure> {
    let mut signals = Signals::catch()?;
    let started = Stopwatch::start();
    let patience = patience(args.nonblock, args.wait);
    let choice = choose(store)?;
    choice.tell_of_default(report);
    let locks = signals.or(choice.connect_within(Purpose::Lock, patience, report)).await??;
    can_detach(&locks, "acquire")?;
    let options = args.texts.beside(LockOptions::new().ttl(args.ttl).wait(patience), None);
    let Some(guard) = signals.or(locks.acquire(&args.key, &options)).await?? else {
        let holders = locks.inspect(&args.key).await.ok();
        return Err(Failure::Busy { key: args.key.clone(), waited: started.read(), holders });
    };
    leave(guard)?;
    close(&locks).await;
    Ok(0)
}

/// `leasehold renew`: prolongs such a lock, and prints its new text. Returns the exit code.
pub(crate) async fn renew(args: &RenewArgs, store: &StoreArgs, report: Report) -> Result<u8, Failure> {
    let options = LockOptions::new().ttl(args.ttl).label(default_label());
    let (locks, guard) = take_over(&args.text, &options, store, report, "renew").await?;
    guard.renew().await?;
    leave(guard)?;
    close(&locks).await;
    Ok(0)
}

/// `leasehold release`: releases such a lock. Returns the exit code.
pub(crate) async fn release(args: &ReleaseArgs, store: &StoreArgs, report: Report) -> Result<u8, Failure> {
    let (locks, guard) = take_over(&args.text, &LockOptions::new(), store, report, "release").await?;
    let key = guard.key().clone();
    let outcome = guard.release().await?;
    close(&locks).await;
    match outcome {
        ReleaseOutcome::Released => Ok(0),
        ReleaseOutcome::AlreadyLost(reason) => Err(Error::new(ErrorKind::Lost(reason), "release").key(&key).into()),
    }
}

async fn take_over(
    text: &str,
    options: &LockOptions,
    store: &StoreArgs,
    report: Report,
    operation: &'static str,
) -> Result<(Locks, LockGuard), Failure> {
    let mut signals = Signals::catch()?;
    let detached: DetachedLock = text_of(text)?.parse()?;
    let locks = signals.or(choose(store)?.connect_within(Purpose::Lock, Wait::Never, report)).await??;
    can_detach(&locks, operation)?;
    let gone = || {
        let why = "nobody holds it by this text: it was renewed or released since, its time is over, or it is of another store";
        Error::new(ErrorKind::Lost(LossReason::Expired), operation).key(detached.key()).detail(why)
    };
    let guard = signals.or(locks.attach(&detached, options)).await??.ok_or_else(gone)?;
    Ok((locks, guard))
}

/// The text itself, or the first line of the input, which no other user can see.
fn text_of(text: &str) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut all = Vec::new();
    io::stdin().take(4096).read_to_end(&mut all).map_err(Failure::System)?;
    Ok(String::from_utf8_lossy(&all).lines().next().unwrap_or_default().to_owned())
}

/// Leaves the lock to whoever has its text.
fn leave(guard: LockGuard) -> Result<(), Failure> {
    let text = guard.detach()?.expose();
    io::stdout().write_all(format!("{text}\n").as_bytes()).map_err(Failure::System)
}
