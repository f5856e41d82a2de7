use std::result::Result as Either;

use leasehold_core::{Attempt, Claim, Mode, Result};

use crate::counter::Counter;
use crate::counter_lock::{self, CounterLock};
use crate::error::unavailable;
use crate::file_lock::{FileLock, OpenFile};
use crate::grant::{Grant, RecordLocation};
use crate::key_files::KeyFiles;
use crate::lock_file;
use crate::open_dir::For;
use crate::store::Store;

/// Number of attempts to lock a lock file that is replaced while the attempt runs.
const TRIES: u32 = 16;

enum Outcome {
    Granted(Grant),
    Busy,
    /// Nobody stands in the way, but the counter has to wait for the clock.
    Ahead,
    /// The file that was locked is no longer the key's lock file.
    Replaced,
}

/// Grants the key if nobody holds it in a mode that excludes the claim's.
pub(crate) async fn try_acquire(store: &Store, claim: &Claim) -> Result<Attempt> {
    if let Some(epoch) = repeated(store, claim) {
        return Ok(Attempt::Granted { epoch: Some(epoch) });
    }
    for _ in 0..TRIES {
        match attempt(store, claim).await {
            Ok(Outcome::Granted(grant)) => {
                let epoch = Some(grant.epoch);
                store.held().insert(claim.owner, grant);
                return Ok(Attempt::Granted { epoch });
            }
            Ok(Outcome::Ahead) => return Ok(Attempt::AHEAD_OF_THE_CLOCK),
            Ok(Outcome::Busy) => return Ok(Attempt::Busy { retry_in: None }),
            Ok(Outcome::Replaced) => {
                store.reopen_if_replaced()?;
            }
            // An error in a directory that is no longer the one at its path says nothing about the key.
            Err(error) => {
                if !store.reopen_if_replaced()? {
                    return Err(error);
                }
            }
        }
    }
    let files = store.directory.key_files(&claim.key);
    Err(unavailable(&files.lock, "does not stay where it is; is something cleaning up there?"))
}

/// Returns the epoch of the grant that this owner got before, if it still has it.
fn repeated(store: &Store, claim: &Claim) -> Option<u64> {
    let held = store.held();
    let grant = held.get(&claim.owner).filter(|grant| grant.key == claim.key)?;
    grant.is_in_place().unwrap_or(true).then_some(grant.epoch)
}

/// Tries once. The order of the steps is the protocol: lock the file, take the next epoch, write it down, write the
/// holder's record, and check as the last step that the locked file is still the lock file. So nothing is granted on a
/// file that was removed or replaced before, and a process that replaces the file afterwards finds the epoch in it.
async fn attempt(store: &Store, claim: &Claim) -> Result<Outcome> {
    let files = store.directory.key_files(&claim.key);
    let kept = store.idle.take(&files.lock);
    let opened = kept.map_or_else(|| OpenFile::at(&files.lock, For::Creating), |kept| Ok(Some(kept)))?;
    let Some(opened) = opened else { return Ok(Outcome::Replaced) };
    let locked = match opened.try_lock(claim.mode, &files.lock)? {
        Ok(locked) => locked,
        // A file that was kept open may have been replaced long ago.
        Err(busy) if !busy.is_at(&files.lock)? => return Ok(Outcome::Replaced),
        Err(busy) => {
            store.idle.keep(files.lock, busy);
            return Ok(Outcome::Busy);
        }
    };
    let session = store.session()?;
    let record = |epoch| store.record(claim, &session, epoch, locked.file.id);
    let (epoch, record) = match claim.mode {
        Mode::Exclusive => {
            let (stored, _) = files.read_counter(&locked)?;
            let Some(counter) = counter_lock::next_counter(stored, None, &files, &store.clock).await? else {
                store.idle.keep(files.lock.clone(), locked.unlock(&files.lock)?);
                return Ok(Outcome::Ahead);
            };
            let bytes = lock_file::render(Some(counter), &files.key, Some(&record(counter.epoch)));
            locked.file.write(&bytes, 0, &files.lock)?;
            (counter.epoch, RecordLocation::LockFile)
        }
        Mode::Shared => {
            let counter = match count_beside_readers(store, &locked, &files).await? {
                Ok(counter) => counter,
                Err(outcome) => return Ok(outcome),
            };
            let reader = files.readers().write(&record(counter.epoch))?;
            (counter.epoch, RecordLocation::ReaderFile(reader))
        }
    };
    let grant = Grant::new(claim.key.clone(), files, locked, epoch, record);
    match grant.is_in_place() {
        Ok(true) => Ok(Outcome::Granted(grant)),
        Ok(false) => Ok(Outcome::Replaced),
        Err(error) => {
            grant.free(&store.idle);
            Err(error)
        }
    }
}

/// Takes the next epoch under the counter lock, because other readers hold the same lock file. Not granted if the counter
/// lock was lost meanwhile, so that another reader may have taken the same epoch, or if the counter has to wait for the
/// clock.
async fn count_beside_readers(store: &Store, locked: &FileLock, files: &KeyFiles) -> Result<Either<Counter, Outcome>> {
    let counter_lock = CounterLock::take(&files.counter()).await?;
    let (stored, complete) = files.read_counter(locked)?;
    let next = counter_lock::next_counter(stored, Some(&counter_lock), files, &store.clock).await?;
    let Some(counter) = next else { return Ok(Err(Outcome::Ahead)) };
    if complete {
        locked.file.write(counter.to_line().as_bytes(), 0, &files.lock)?;
    } else {
        locked.file.write(&lock_file::render(Some(counter), &files.key, None), 0, &files.lock)?;
    }
    Ok(if counter_lock.is_in_place()? { Ok(counter) } else { Err(Outcome::Replaced) })
}
