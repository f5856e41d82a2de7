use std::os::unix::fs::FileExt;
use std::time::Duration;

use leasehold_core::{Clock, FencingToken, Result};

use crate::counter::Counter;
use crate::error::{failed, unavailable};
use crate::file_lock::{FileLock, OpenFile};
use crate::key_files::KeyFiles;
use crate::open_dir::{For, PathAt};

/// How far ahead of an epoch the spare copy is written, so that it is written rarely.
const SPAN: u64 = 1 << 16;

/// The right to change the counter of a key, and the counter's spare copy. The right ends when this is dropped.
///
/// Readers hold the lock file together, so the lock file does not keep two of them from taking the same epoch; this
/// lock does. Its file stays the same one when the lock file is replaced.
///
/// The spare copy makes the loss of a lock file harmless where the clock was set back: the clock alone could then repeat
/// numbers. So before an epoch is granted that is ahead of the clock by more than the rule of epochs allows, a number
/// that is not below it is written into the file of this lock.
#[derive(Debug)]
pub(crate) struct CounterLock {
    locked: FileLock,
    path: PathAt,
}

impl CounterLock {
    /// Waits for the lock. Others hold it for microseconds.
    pub(crate) async fn take(path: &PathAt) -> Result<Self> {
        const TRIES: u32 = 16;
        for _ in 0..TRIES {
            let Some(opened) = OpenFile::at(path, For::Creating)? else { break };
            if let Some(taken) = Self::wait(opened, path).await? {
                return Ok(taken);
            }
        }
        Err(unavailable(path, "does not stay where it is; is something cleaning up there?"))
    }

    /// Waits for the lock if its file exists. `None` if it does not: then there is no spare copy.
    async fn take_existing(path: &PathAt) -> Result<Option<Self>> {
        match OpenFile::at(path, For::Writing)? {
            Some(opened) => Self::wait(opened, path).await,
            None => Ok(None),
        }
    }

    async fn wait(opened: OpenFile, path: &PathAt) -> Result<Option<Self>> {
        let taken = Self { locked: FileLock::wait(opened, path).await?, path: path.clone() };
        Ok(taken.is_in_place()?.then_some(taken))
    }

    fn spare(&self) -> Result<u64> {
        let mut line = [0; Counter::BYTES];
        let read = self.locked.file.handle.read_at(&mut line, 0).map_err(|cause| failed("read", &self.path, cause))?;
        Ok(Counter::from_line(&line[..read]).map_or(0, |spare| spare.epoch))
    }

    /// Writes a spare copy that is not below `epoch`, and returns it.
    fn reserve(&self, epoch: u64) -> Result<u64> {
        let reserved = self.spare()?.max(epoch.saturating_add(SPAN));
        let line = Counter { epoch: reserved, reserved: 0 }.to_line();
        self.locked.file.write(line.as_bytes(), 0, &self.path)?;
        let written = self.is_in_place()?;
        if written { Ok(reserved) } else { Err(unavailable(&self.path, "was removed while it was written")) }
    }

    /// Whether the locked file is still the one at its path. If not, another reader may hold this lock on a new file.
    pub(crate) fn is_in_place(&self) -> Result<bool> {
        self.locked.file.is_at(&self.path)
    }
}

/// Returns the counter with the next epoch in it. The caller writes it before it grants that epoch. `None` if the counter
/// has to wait for the clock.
///
/// `stored` is the counter in the lock file, `None` if it could not be read. A caller that holds the counter lock
/// already passes it as `held`; otherwise this function takes the lock when it needs the spare copy.
pub(crate) async fn next_counter(
    stored: Option<Counter>,
    held: Option<&CounterLock>,
    files: &KeyFiles,
    clock: &Clock,
) -> Result<Option<Counter>> {
    let stored = match (stored, held) {
        (Some(counter), _) => counter,
        (None, Some(held)) => recover(held.spare()?, files, clock).await?,
        (None, None) => {
            let existing = CounterLock::take_existing(&files.counter()).await?;
            recover(existing.map_or(Ok(0), |existing| existing.spare())?, files, clock).await?
        }
    };
    let now = FencingToken::epoch_at(clock.since_1970());
    let Some(epoch) = stored.following(now)? else { return Ok(None) };
    let reserved = match held {
        _ if epoch <= now + FencingToken::MOST_AHEAD || epoch <= stored.reserved => stored.reserved,
        Some(held) => held.reserve(epoch)?,
        None => CounterLock::take(&files.counter()).await?.reserve(epoch)?,
    };
    Ok(Some(Counter { epoch, reserved }))
}

/// The counter to continue from when the stored one is lost: the spare copy, or the clock and as much as an epoch may be
/// ahead of it. It also waits for the clock to go on: every epoch above the spare copy was at most so far ahead of the clock
/// when it was granted, so none of them can be the next one.
async fn recover(spare: u64, files: &KeyFiles, clock: &Clock) -> Result<Counter> {
    const TICK: Duration = Duration::from_millis(1);
    const TRIES: u32 = 100;
    let (lost_before, began) = (FencingToken::epoch_at(clock.since_1970()), clock.now());
    let mut tries = 0;
    while tries < TRIES {
        // Read before the clock that has to go on, for a thread that stands still in between.
        let spent = clock.now().since(began);
        let now = FencingToken::epoch_at(clock.since_1970());
        if now > lost_before {
            return Ok(Counter { epoch: spare.max(now + FencingToken::MOST_AHEAD - 1), reserved: spare });
        }
        // The clock goes on in a sixteenth of a millisecond, unless it was just set back: far sooner than a timer.
        if spent < TICK {
            std::hint::spin_loop();
        } else {
            tries += 1;
            tokio::time::sleep(TICK).await;
        }
    }
    Err(unavailable(&files.lock, "has lost its counter, which cannot be replaced: the clock was just set back"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_dir::OpenDir;

    fn key_files(dir: &tempfile::TempDir) -> KeyFiles {
        KeyFiles { lock: OpenDir::open(dir.path()).unwrap().path_to("k.lock"), key: "k".into() }
    }

    #[tokio::test]
    async fn a_lost_counter_goes_on_above_everything_that_was_granted() {
        let dir = tempfile::tempdir().unwrap();
        let (files, clock) = (key_files(&dir), Clock::system());
        let mut newest = Some(Counter { epoch: FencingToken::epoch_at(clock.since_1970()) + 1_000_000, reserved: 0 });
        for _ in 0..10 {
            newest = next_counter(newest, None, &files, &clock).await.unwrap();
        }
        let recovered = next_counter(None, None, &files, &clock).await.unwrap().unwrap();
        assert!(recovered.epoch > newest.unwrap().epoch);
        let held = CounterLock::take(&files.counter()).await.unwrap();
        let again = next_counter(None, Some(&held), &files, &clock).await.unwrap().unwrap();
        assert!(again.epoch > recovered.epoch);
    }

    #[tokio::test]
    async fn the_spare_copy_never_goes_down_and_a_torn_one_counts_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = key_files(&dir).counter();
        let held = CounterLock::take(&path).await.unwrap();
        let high = held.reserve(1_000_000).unwrap();
        assert_eq!((held.reserve(10).unwrap(), held.spare().unwrap()), (high, high));
        for torn in [&b"leasehold2 000"[..], &[0xff; 4096]] {
            std::fs::write(path.full(), torn).unwrap();
            assert_eq!(held.spare().unwrap(), 0);
        }
    }

    #[tokio::test]
    async fn a_counter_lock_that_another_keeps_is_an_error_and_no_endless_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = key_files(&dir).counter();
        let _taken = CounterLock::take(&path).await.unwrap();
        let error = CounterLock::take(&path).await.unwrap_err();
        assert_eq!(error.kind(), leasehold_core::ErrorKind::Unavailable);
    }
}
