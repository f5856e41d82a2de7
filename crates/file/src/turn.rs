use std::os::unix::fs::FileExt;
use std::time::Duration;

use leasehold_core::{Clock, Result};

use crate::counter::Counter;
use crate::directory::Place;
use crate::fault::{failed, unavailable};
use crate::flocked::{Flocked, Opened};
use crate::folder::Spot;

/// How far ahead the spare copy is written, so that it is written rarely.
const SPAN: u64 = 1 << 16;

/// The right to change the counter of a key beside other readers, and its spare copy; given back when dropped.
///
/// Readers hold their lock together, so it does not keep them from counting to the same number; this does. The file
/// stays the same one when the lock file is replaced.
///
/// The spare copy is what makes a lost lock file harmless. A counter that is used more than once in a millisecond
/// runs ahead of the clock, and the clock alone could then repeat its numbers. So before an epoch ahead of the clock
/// is granted, a number that is not below it is written here.
#[derive(Debug)]
pub(crate) struct Turn {
    locked: Flocked,
    spot: Spot,
}

impl Turn {
    /// Waits for the turn; the others take microseconds.
    pub(crate) async fn take(spot: &Spot) -> Result<Self> {
        const TRIES: u32 = 16;
        for _ in 0..TRIES {
            let Some(opened) = Opened::at(spot, true)? else { break };
            if let Some(turn) = Self::wait(opened, spot).await? {
                return Ok(turn);
            }
        }
        Err(unavailable(spot, "does not stay where it is; is something cleaning up there?"))
    }

    /// The same, if anybody ever took a turn.
    async fn existing(spot: &Spot) -> Result<Option<Self>> {
        match Opened::at(spot, false)? {
            Some(opened) => Self::wait(opened, spot).await,
            None => Ok(None),
        }
    }

    async fn wait(opened: Opened, spot: &Spot) -> Result<Option<Self>> {
        let turn = Self { locked: Flocked::soon(opened, spot).await?, spot: spot.clone() };
        Ok(turn.is_ours()?.then_some(turn))
    }

    fn spare(&self) -> Result<u64> {
        let mut line = [0; Counter::BYTES];
        let read = self.locked.0.file.read_at(&mut line, 0).map_err(|cause| failed("read", &self.spot, cause))?;
        Ok(Counter::from_line(&line[..read]).map_or(0, |spare| spare.epoch))
    }

    /// Writes a spare copy that is not below `epoch`, and answers what it is.
    fn reserve(&self, epoch: u64) -> Result<u64> {
        let reserved = self.spare()?.max(epoch.saturating_add(SPAN));
        let line = Counter { epoch: reserved, reserved: 0 }.to_line();
        self.locked.0.write(line.as_bytes(), 0, &self.spot)?;
        if self.is_ours()? { Ok(reserved) } else { Err(unavailable(&self.spot, "was removed while it was written")) }
    }

    /// Whether it is still ours alone: if the file is gone, another reader may have a turn on a new one.
    pub(crate) fn is_ours(&self) -> Result<bool> {
        self.locked.0.is_at(&self.spot)
    }
}

/// The counter with the next epoch in it, to be written before that is granted. `None`: there is no counter that
/// could be read. Whoever has the turn already passes it along.
pub(crate) async fn count(
    stored: Option<Counter>,
    turn: Option<&Turn>,
    place: &Place,
    clock: &Clock,
) -> Result<Counter> {
    let stored = match (stored, turn) {
        (Some(counter), _) => counter,
        (None, Some(turn)) => recover(turn.spare()?, place, clock).await?,
        (None, None) => {
            let spare = Turn::existing(&place.count()).await?.map_or(Ok(0), |turn| turn.spare())?;
            recover(spare, place, clock).await?
        }
    };
    let now = clock.unix_millis();
    let epoch = stored.following(now)?;
    let reserved = match turn {
        _ if epoch <= now || epoch <= stored.reserved => stored.reserved,
        Some(turn) => turn.reserve(epoch)?,
        None => Turn::take(&place.count()).await?.reserve(epoch)?,
    };
    Ok(Counter { epoch, reserved })
}

/// What to count on from when the counter is gone: the spare copy and, since every epoch above that was at most the
/// clock's reading when it was granted, a reading of the clock that nobody can have had before.
async fn recover(spare: u64, place: &Place, clock: &Clock) -> Result<Counter> {
    const TICKS: u32 = 100;
    let lost_before = clock.unix_millis();
    for _ in 0..TICKS {
        if clock.unix_millis() > lost_before {
            return Ok(Counter { epoch: spare, reserved: spare });
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Err(unavailable(&place.lock, "cannot be made up for: the clock went back just now"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;

    fn spot(dir: &tempfile::TempDir, name: &str) -> Spot {
        Folder::open(dir.path()).unwrap().spot(name)
    }

    fn place(dir: &tempfile::TempDir) -> Place {
        Place { lock: spot(dir, "k.lock"), key: "k".into() }
    }

    #[tokio::test]
    async fn a_counter_behind_the_clock_needs_no_spare_copy() {
        let dir = tempfile::tempdir().unwrap();
        let (place, clock) = (place(&dir), Clock::system());
        let before = clock.unix_millis();
        let next = count(Some(Counter { epoch: 5, reserved: 0 }), None, &place, &clock).await.unwrap();
        assert!(next.epoch >= before && next.reserved == 0);
        assert!(!place.count().is_there().unwrap());
    }

    #[tokio::test]
    async fn a_lost_counter_goes_on_above_everything_that_was_granted() {
        let dir = tempfile::tempdir().unwrap();
        let (place, clock) = (place(&dir), Clock::system());
        let mut newest = Some(Counter { epoch: clock.unix_millis() + 1_000_000, reserved: 0 });
        for _ in 0..10 {
            newest = Some(count(newest, None, &place, &clock).await.unwrap());
        }
        let recovered = count(None, None, &place, &clock).await.unwrap();
        assert!(recovered.epoch > newest.unwrap().epoch);
        let turn = Turn::take(&place.count()).await.unwrap();
        assert!(count(None, Some(&turn), &place, &clock).await.unwrap().epoch > recovered.epoch);
    }

    #[tokio::test]
    async fn a_counter_lost_within_the_millisecond_does_not_repeat() {
        let dir = tempfile::tempdir().unwrap();
        let (place, clock) = (place(&dir), Clock::system());
        let mut newest = 0;
        for _ in 0..20 {
            let next = count(None, None, &place, &clock).await.unwrap();
            assert!(next.epoch > newest);
            newest = next.epoch;
        }
    }

    #[tokio::test]
    async fn the_spare_copy_never_goes_down() {
        let dir = tempfile::tempdir().unwrap();
        let turn = Turn::take(&spot(&dir, "k.count")).await.unwrap();
        let high = turn.reserve(1_000_000).unwrap();
        assert_eq!(turn.reserve(10).unwrap(), high);
        assert_eq!(turn.spare().unwrap(), high);
    }

    #[tokio::test]
    async fn a_torn_spare_copy_counts_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = spot(&dir, "k.count");
        std::fs::write(path.path(), b"leasehold1 000").unwrap();
        assert_eq!(Turn::take(&path).await.unwrap().spare().unwrap(), 0);
        std::fs::write(path.path(), vec![0xff; 4096]).unwrap();
        assert_eq!(Turn::take(&path).await.unwrap().spare().unwrap(), 0);
    }

    #[tokio::test]
    async fn a_turn_that_does_not_end_is_an_error_and_no_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = spot(&dir, "k.count");
        let _taken = Turn::take(&path).await.unwrap();
        let error = Turn::take(&path).await.unwrap_err();
        assert_eq!(error.kind(), leasehold_core::ErrorKind::Unavailable);
    }
}
