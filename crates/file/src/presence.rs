use std::os::unix::fs::FileExt;

use leasehold_core::{GrantRef, LeaseStatus, LockKey, Result};

use crate::FileBackend;
use crate::directory::Place;
use crate::flocked::Flocked;
use crate::folder::Spot;
use crate::idle::IdleFiles;
use crate::layout;
use crate::record::Entry;

impl FileBackend {
    /// Whether a grant is still ours. There is no lease to prolong, but a lock file can be replaced or removed.
    pub(crate) fn look_after(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let mut held = self.held();
        let Some(ours) = held.get(&grant.owner).filter(|ours| ours.key == grant.key) else {
            return Ok(LeaseStatus::NotHeld);
        };
        let answer = ours.presence(ours.is_in_place()?);
        if answer != LeaseStatus::Held {
            held.remove(&grant.owner);
        }
        Ok(answer)
    }

    /// Frees a grant. Whatever it answers, we do not hold it any more.
    pub(crate) fn let_go(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let mut held = self.held();
        if held.get(&grant.owner).is_none_or(|ours| ours.key != grant.key) {
            return Ok(LeaseStatus::NotHeld);
        }
        let Some(ours) = held.remove(&grant.owner) else { return Ok(LeaseStatus::NotHeld) };
        drop(held);
        let answer = ours.is_in_place().map(|in_place| ours.presence(in_place));
        if !matches!(answer, Ok(LeaseStatus::NotHeld | LeaseStatus::ForceReleased)) {
            ours.free(&self.idle);
        }
        answer
    }
}

/// A grant that this process has: the kernel's lock, and what is written down of it. Dropping it frees the key
/// and leaves what is written in a file that is not the lock file any more, or in the name of a session that ended.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) key: LockKey,
    pub(crate) epoch: u64,
    lock: Spot,
    holder_at: u64,
    // Dropped in this order, for the reason that `free` has.
    written: Written,
    pub(crate) locked: Flocked,
}

/// Where a holder is written down.
#[derive(Debug)]
pub(crate) enum Written {
    /// In the lock file.
    Inside,
    /// In a file of its own, which is removed when this is dropped.
    Apart(#[expect(dead_code, reason = "it is there to be dropped")] Entry),
}

impl Grant {
    pub(crate) fn new(key: LockKey, place: Place, locked: Flocked, epoch: u64, written: Written) -> Self {
        Self { key, epoch, holder_at: layout::holder_at(&place.key), lock: place.lock, written, locked }
    }

    pub(crate) fn is_writer(&self) -> bool {
        matches!(self.written, Written::Inside)
    }

    /// Whether our file is still the lock file.
    pub(crate) fn is_in_place(&self) -> Result<bool> {
        self.locked.0.is_at(&self.lock)
    }

    /// Frees the key, and keeps the file for the next time.
    pub(crate) fn free(self, idle: &IdleFiles) {
        if self.is_writer() {
            // If it cannot be written, those who inspect see us until the next grant; the lock is freed all the same.
            let _ = self.locked.0.write(&[layout::NOBODY], self.holder_at, &self.lock);
        }
        // Nobody must find the key free and us written down.
        drop(self.written);
        if let Ok(opened) = self.locked.unlock(&self.lock) {
            idle.keep(self.lock, opened);
        }
    }

    fn presence(&self, in_place: bool) -> LeaseStatus {
        let mut mark = [0];
        match in_place {
            true => LeaseStatus::Held,
            false if self.locked.0.file.read_at(&mut mark, layout::MARK_AT).is_ok() && mark == [layout::FORCED] => {
                LeaseStatus::ForceReleased
            }
            false => LeaseStatus::NotHeld,
        }
    }
}
