use leasehold_core::{LockGuard, LockOptions, Locker, LockerExt, ReadGuard, ReleaseOutcome, RwLocker, RwLockerExt};

use crate::load::{Contender, Key, Result};

/// A backend of Leasehold with default options: a lease of 30 s that renews itself, fencing where there is any.
pub(crate) struct Ours<L> {
    locks: L,
    options: LockOptions,
    /// Whether guards are dropped instead of released.
    drops: bool,
}

/// Any locker, in the loop.
pub(crate) fn ours<L>(locks: L) -> Ours<L> {
    Ours { locks, options: LockOptions::new(), drops: false }
}

impl<L> Ours<L> {
    pub(crate) fn dropping(self) -> Self {
        Self { drops: true, ..self }
    }
}

const ENDED: &str = "a wait without end ended";

impl<L: Locker + 'static> Contender for Ours<L> {
    type Held = LockGuard;

    async fn acquire(&self, key: &Key) -> Result<LockGuard> {
        Ok(self.locks.acquire(&key.name, &self.options).await?.ok_or(ENDED)?)
    }

    async fn release(&self, _key: &Key, held: LockGuard) -> Result<()> {
        if self.drops {
            drop(held);
            return Ok(());
        }
        was_held(held.release().await?)
    }

    fn token(held: &LockGuard) -> u64 {
        held.fencing_token().map_or(0, u64::from)
    }
}

/// The readers of a backend.
pub(crate) struct Readers<L>(pub(crate) Ours<L>);

impl<L: RwLocker + 'static> Contender for Readers<L> {
    type Held = ReadGuard;

    async fn acquire(&self, key: &Key) -> Result<ReadGuard> {
        Ok(self.0.locks.acquire_read(&key.name, &self.0.options).await?.ok_or(ENDED)?)
    }

    async fn release(&self, _key: &Key, held: ReadGuard) -> Result<()> {
        was_held(held.release().await?)
    }

    fn token(held: &ReadGuard) -> u64 {
        held.fencing_token().map_or(0, u64::from)
    }
}

fn was_held(outcome: ReleaseOutcome) -> Result<()> {
    match outcome {
        ReleaseOutcome::Released => Ok(()),
        ReleaseOutcome::AlreadyLost(reason) => Err(format!("lost while it was held: {reason}").into()),
    }
}
