//! What a case works with: a server, a proxy before it, clients, and checks that many cases need.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::proxy::Proxy;
use super::rig::{Able, PASSWORD, Rig, Rigged, Room, Unable};
use crate::conformance::error_text::error_text;
use crate::{
    Admin, Capability, Clock, Error, ErrorKind, FencingToken, Kind, LockGuard, LockKey, LockOptions, LockerExt, Locks,
    ReleaseOutcome, Target, Wait,
};

pub(super) type Verdict = Able<()>;

/// Fails the case, unless this holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            let unmet = $crate::conformance::verdict::Failure::unmet(stringify!($condition), &format!($($text)+));
            return Err($crate::conformance::driver::rig::Unable::from(unmet));
        }
    };
}
pub(super) use ensure;

/// How long anything may take that works: far longer than it takes on the busiest machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A lease that outlasts every case: what comes free before was not freed by its end.
pub(super) const LONG: Duration = Duration::from_secs(3600);

/// A server of its own, and a proxy before it.
pub(super) struct Stage {
    rig: Arc<dyn Rig>,
    pub(super) kind: Kind,
    pub(super) server: Box<dyn Rigged>,
    pub(super) proxy: Proxy,
}

impl Stage {
    pub(super) async fn set(rig: Arc<dyn Rig>, room: Room) -> Able<Self> {
        let server = rig.start(room).await?;
        let proxy = Proxy::start(server.port());
        Ok(Self { kind: rig.kind(), rig, server, proxy })
    }

    /// A second server, for comparison.
    pub(super) async fn another(&self) -> Able<Self> {
        Self::set(Arc::clone(&self.rig), Room::Ample).await
    }

    pub(super) fn cycles(&self) -> usize {
        self.rig.cycles()
    }

    /// A client of the server.
    pub(super) async fn near(&self) -> crate::Result<Locks> {
        self.connect(&self.server.url()).await
    }

    /// A client that reaches the server through the proxy.
    pub(super) async fn far(&self) -> crate::Result<Locks> {
        self.connect(&self.proxy.url(&self.server.url())).await
    }

    /// One through the proxy, and one past it.
    pub(super) async fn two(&self) -> crate::Result<[Locks; 2]> {
        Ok([self.far().await?, self.near().await?])
    }

    pub(super) async fn connect(&self, url: &str) -> crate::Result<Locks> {
        (self.kind.connect)(Target::new(url)).await
    }

    /// The error of a URL that does not connect.
    pub(super) async fn refused(&self, url: &str) -> Able<Error> {
        let connected = timeout(PATIENCE, self.connect(url)).await;
        match connected.map_err(|_| Unable::Failed("connecting hangs".to_owned()))? {
            Err(error) => Ok(error),
            Ok(_) => Err(Unable::Failed("it connected although it must not".to_owned())),
        }
    }

    /// Whether its lockers are sessions.
    pub(super) fn has_sessions(&self) -> bool {
        (self.kind.capabilities)().has(Capability::Reentrancy)
    }

    /// Leaves cases out whose locker has to contend with itself.
    pub(super) fn contends_with_itself(&self) -> Verdict {
        if self.has_sessions() {
            return super::rig::never("a session takes its keys again, and does not wait for itself");
        }
        Ok(())
    }

    /// No connection is left open through the proxy.
    pub(super) async fn nobody_is_connected(&self) -> Verdict {
        eventually("all connections are closed", async || self.proxy.open() == 0).await
    }
}

pub(super) fn key(name: &str) -> Able<LockKey> {
    Ok(LockKey::new(name)?)
}

/// Options of a try, with a lease that outlasts the case.
pub(super) fn once() -> LockOptions {
    LockOptions::new().ttl(LONG).wait(Wait::Never)
}

/// The same of a wait for anything that works.
pub(super) fn patient() -> LockOptions {
    LockOptions::new().ttl(LONG).wait(Wait::UpTo(PATIENCE))
}

/// Acquires a key that is free, or becomes so well before any lease ends.
pub(super) async fn take(locks: &Locks, name: &str) -> Able<LockGuard> {
    take_for(locks, name, LONG).await
}

/// The same with another lease.
pub(super) async fn take_for(locks: &Locks, name: &str, lease: Duration) -> Able<LockGuard> {
    let guard = locks.acquire(&key(name)?, &patient().ttl(lease)).await?;
    guard.ok_or_else(|| Unable::Failed(format!("{name} is not free after {PATIENCE:?}")))
}

/// Tries to acquire.
pub(super) async fn attempt(locks: &Locks, name: &str) -> Able<crate::Result<Option<LockGuard>>> {
    Ok(locks.acquire(&key(name)?, &once()).await)
}

/// Waits until this locker, without a new one, has taken and released a key.
pub(super) async fn works(locks: &Locks) -> Verdict {
    let name = key("works")?;
    eventually("the locker works again", async || {
        let Ok(Some(guard)) = locks.acquire(&name, &once()).await else { return false };
        guard.release().await.is_ok()
    })
    .await
}

/// A lock is held through a fault: its guard says so and is renewed, and nobody else gets the key.
pub(super) async fn is_kept(guard: &LockGuard, theirs: &Locks) -> Verdict {
    eventually("the lock is renewed", async || guard.loss().is_some() || guard.renew().await.is_ok()).await?;
    ensure!(guard.is_held(), "it is lost: {:?}", guard.loss());
    let mut taken = None;
    eventually("another is answered", async || theirs.inspect(guard.key()).await.is_ok()).await?;
    if let Some(other) = theirs.acquire(guard.key(), &once()).await? {
        taken = other.fencing_token();
    }
    ensure!(taken.is_none(), "{} was granted twice", guard.key());
    let seen = theirs.inspect(guard.key()).await?.holders;
    ensure!(seen.len() == 1 && seen[0].token == guard.fencing_token(), "{seen:?} for {guard:?}");
    Ok(())
}

/// A lock is released, and the next one gets the key under a greater token.
pub(super) async fn passes_on(guard: LockGuard, theirs: &Locks) -> Verdict {
    let (name, token) = (guard.key().as_str().to_owned(), guard.fencing_token());
    let released = guard.release().await;
    ensure!(
        matches!(&released, Ok(ReleaseOutcome::Released)) || released.as_ref().is_err_and(Error::is_transient),
        "{released:?}"
    );
    comes_after(theirs, &name, token).await
}

/// A key is free, or becomes so well before a lease ends, and its next token is greater.
pub(super) async fn comes_after(locks: &Locks, name: &str, token: Option<FencingToken>) -> Verdict {
    let next = take(locks, name).await?;
    ensure!(next.fencing_token() > token, "{:?} after {token:?}", next.fencing_token());
    next.release().await?;
    Ok(())
}

/// An error is of this kind, says all of these words, and names no password.
pub(super) fn is(error: &Error, kind: ErrorKind, words: &[&str]) -> Verdict {
    let told = error_text(error);
    ensure!(error.kind() == kind, "{told}");
    for word in words {
        ensure!(told.contains(word), "no {word:?} in {told}");
    }
    hides(error)
}

/// An error that a retry may cure. It names no password.
pub(super) fn is_transient(error: &Error) -> Verdict {
    ensure!(error.is_transient(), "{}", error_text(error));
    hides(error)
}

/// An error names no password.
fn hides(error: &Error) -> Verdict {
    let told = error_text(error);
    for secret in [PASSWORD, "hunter2%2Fcanary", "canary"] {
        ensure!(!told.contains(secret), "a password is told: {told}");
    }
    Ok(())
}

/// Polls every 10 ms until `is_so` answers true.
pub(super) async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) -> Verdict {
    let clock = Clock::system();
    let limit = clock.now().plus(PATIENCE);
    while !is_so().await {
        ensure!(clock.now() < limit, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
