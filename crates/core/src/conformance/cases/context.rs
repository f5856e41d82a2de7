//! What a case works with: clients, keys, leases of known length, and checks that many cases need.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::conformance::process::{Holder, Role};
use crate::conformance::subject::{Subject, TestClient};
use crate::conformance::variant::VARIABLE;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{
    Attempt, Capability, Claim, Clock, GrantRef, LeaseStatus, LocalHandoff, LockGuard, LockKey, LockOptions, Mode,
    OwnerId, Result, Wait,
};

/// What a case works with: clients of the backend under test, and keys that no other case uses.
#[derive(Clone)]
pub(in crate::conformance) struct TestContext {
    pub(in crate::conformance) subject: Arc<dyn Subject>,
    variant: &'static str,
    case: &'static str,
    local_handoff: LocalHandoff,
    /// Whether somebody reads why the case failed, so that it is worth a while to say it in few words.
    pub(in crate::conformance) is_explained: bool,
}

/// A limit for anything that works, also on a busy machine.
pub(super) const AMPLE: Duration = Duration::from_secs(20);

/// How long after its end a lease may still exclude others: the clock and margin of the store, its timers, and a busy
/// machine. A lease that lasts longer is broken.
pub(super) const MARGIN: Duration = Duration::from_secs(8);

/// The ttl of a lease that a case lets run out, where the store can time it.
pub(super) const BRIEF: Duration = Duration::from_millis(500);

/// The ttl of a lease that is renewed in time also on a busy machine, and short enough for a case to wait for several of
/// them.
pub(super) const SHORT: Duration = Duration::from_secs(3);

/// Options with a long lease and a long wait.
pub(super) fn patient() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(AMPLE))
}

/// Options with a wait as long as this lease may exclude others.
pub(super) fn past(lease: Duration) -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(lease + MARGIN))
}

/// Options of a try, with a long lease.
pub(super) fn once() -> LockOptions {
    LockOptions::new().wait(Wait::Never)
}

impl TestContext {
    pub(in crate::conformance) fn new(
        subject: Arc<dyn Subject>,
        variant: &'static str,
        case: &'static str,
        local_handoff: LocalHandoff,
    ) -> Self {
        Self { subject, variant, case, local_handoff, is_explained: true }
    }

    /// A key that no other case uses.
    pub(super) fn key(&self) -> LockKey {
        let case: String = self.case.chars().take(60).collect();
        LockKey::new(format!("{case}-{}", &OwnerId::random().to_hex()[..12]))
            .unwrap_or_else(|error| unreachable!("the suite's own keys are short: {error}"))
    }

    /// The ttl of a lease that a case lets run out.
    pub(super) fn brief_ttl(&self) -> Duration {
        BRIEF.max(self.subject.capabilities().shortest_ttl())
    }

    /// The modes that the backend claims.
    pub(super) fn modes(&self) -> &'static [Mode] {
        let shared = self.subject.capabilities().has(Capability::Shared);
        if shared { &[Mode::Exclusive, Mode::Shared] } else { &[Mode::Exclusive] }
    }

    /// A helper process that holds this key, under a short lease.
    pub(super) async fn held_elsewhere(&self, key: &LockKey) -> Result<Holder, Failure> {
        let mut environment = self.subject.environment();
        environment.push((VARIABLE.to_owned(), self.variant.to_owned()));
        let role = Role { namespace: Self::namespace().into(), key: key.as_str().into(), ttl: SHORT };
        Holder::start(environment, &role).await
    }

    pub(super) async fn client(&self) -> Result<TestClient> {
        self.client_at(Clock::system()).await
    }

    pub(super) async fn client_at(&self, clock: Clock) -> Result<TestClient> {
        self.client_in(Self::namespace(), clock).await
    }

    pub(in crate::conformance) async fn client_in(&self, namespace: &str, clock: Clock) -> Result<TestClient> {
        self.subject.client(namespace, clock, self.local_handoff).await
    }

    /// `count` clients that exclude each other. Up to `together` of them are the same client, except for sessions, which do
    /// not exclude themselves.
    pub(super) async fn clients(&self, count: usize, together: usize) -> Result<Vec<Arc<TestClient>>> {
        let together = if self.subject.capabilities().has(Capability::Reentrancy) { 1 } else { together };
        let mut clients = Vec::new();
        while clients.len() < count {
            let client = Arc::new(self.client().await?);
            clients.extend(std::iter::repeat_n(client, together));
        }
        Ok(clients)
    }

    /// The namespace of this run.
    pub(in crate::conformance) fn namespace() -> &'static str {
        static NAMESPACE: OnceLock<String> = OnceLock::new();
        NAMESPACE.get_or_init(|| format!("conformance-{}", &OwnerId::random().to_hex()[..8]))
    }

    /// A namespace that nobody else has: not of another case, nor of another run of this one at the same time.
    pub(super) fn new_namespace() -> String {
        format!("{}-{}", Self::namespace(), OwnerId::random().to_hex())
    }

    /// Whether the store shows of a holder when it was granted the key.
    pub(in crate::conformance) async fn shows_when_it_granted(&self) -> Result<bool, Failure> {
        let (ours, key) = (self.client().await?, self.key());
        let guard = ours.take(&key, &patient()).await?;
        let shown = ours.admin.inspect(guard.key()).await?.holders;
        Ok(shown.iter().any(|holder| holder.granted_at.is_some()))
    }

    /// Whether this is what an owner may be told whose lease was ended by force: that, or only that it is gone, where the store gives no
    /// notice.
    pub(super) fn tells_of_force(&self, told: LeaseStatus) -> bool {
        let notices = self.subject.capabilities().has(Capability::ForceNotice);
        told == LeaseStatus::ForceReleased || (told == LeaseStatus::NotHeld && !notices)
    }
}

impl fmt::Debug for TestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestContext").field(&self.case).finish()
    }
}

impl TestClient {
    /// Acquires a key that must be free or become free.
    pub(super) async fn take(&self, key: &LockKey, options: &LockOptions) -> Result<LockGuard, Failure> {
        let guard = self.acquire(key, options).await?;
        guard.ok_or_else(|| Failure(format!("{key} is held by another after {:?}", options.wait)))
    }

    /// Checks that the key is held by another.
    pub(super) async fn finds_it_held(&self, key: &LockKey) -> Verdict {
        ensure!(self.try_once(key).await?.is_none(), "{key} was granted although it is held");
        Ok(())
    }

    /// Claims a key directly at the backend. The engine does not renew this grant.
    pub(super) async fn claims(&self, key: &LockKey, mode: Mode, ttl: Duration) -> Result<GrantRef, Failure> {
        let claim = Claim::new(key, mode, ttl);
        granted(&claim, &self.store.try_acquire(&claim).await?)
    }

    /// Claims a key directly for a lease so brief that it may run out before a slow machine has the votes of all nodes, or the
    /// answer. The store says so, and is asked again after what it may have left.
    pub(super) async fn claims_briefly(&self, key: &LockKey, mode: Mode, ttl: Duration) -> Result<GrantRef, Failure> {
        let limit = self.clock.now().plus(AMPLE);
        loop {
            let claim = Claim::new(key, mode, ttl);
            match self.store.try_acquire(&claim).await {
                Err(error) if error.is_transient() && self.clock.now() < limit => outlast(ttl).await,
                answer => return granted(&claim, &answer?),
            }
        }
    }

    /// Checks that the store shows one grant of a key, with nearly all of its lease left.
    pub(super) async fn sees_left(&self, key: &LockKey, lease: Duration) -> Verdict {
        let holders = self.store.steps().inspect(key).await?.holders;
        let [holder] = &holders[..] else {
            return Err(Failure::unmet(&format!("one holder of {key}"), &format!("{holders:?}")));
        };
        let left = holder.remaining;
        ensure!(left.is_some_and(|left| left <= lease && left + AMPLE > lease), "{left:?} left of {lease:?}");
        Ok(())
    }

    /// Checks that the store shows no holder of the key.
    pub(super) async fn sees_nobody(&self, key: &LockKey) -> Verdict {
        let holders = self.store.steps().inspect(key).await?.holders;
        ensure!(holders.is_empty(), "{key} is shown as held by {holders:?}");
        Ok(())
    }

    /// Checks that the key is free, or becomes so without a lease having to run out.
    pub(super) async fn finds_it_free(&self, key: &LockKey) -> Verdict {
        let holders = self.admin.inspect(key).await?;
        let Some(guard) = self.acquire(key, &LockOptions::new().wait(Wait::UpTo(MARGIN))).await? else {
            return Err(Failure(format!("{key} is not free; at first it was {holders:?}")));
        };
        guard.release().await?;
        Ok(())
    }
}

/// Waits until a lease has run out in the store.
pub(super) async fn outlast(lease: Duration) {
    tokio::time::sleep(lease * 2).await;
}

/// The grant that a claim of a free key got.
fn granted(claim: &Claim, attempt: &Attempt) -> Result<GrantRef, Failure> {
    match attempt {
        Attempt::Granted { epoch } => Ok(claim.grant(*epoch)),
        busy => Err(Failure::unmet(&format!("{} is free", claim.key), &format!("{busy:?}"))),
    }
}

/// Waits until `check` returns true.
pub(super) async fn eventually<F: Future<Output = Result<bool>>>(what: &str, mut check: impl FnMut() -> F) -> Verdict {
    let clock = Clock::system();
    let limit = clock.now().plus(AMPLE);
    while !check().await? {
        ensure!(clock.now() < limit, "not within {AMPLE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Fails instead of hanging if `future` does not end.
pub(super) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::time::timeout(AMPLE, future).await.map_err(|_| Failure(format!("not within {AMPLE:?}: {what}")))
}
