use std::os::unix::fs::FileExt;
use std::sync::Arc;

use leasehold_core::{Attempt, Claim, Mode, Result};

use crate::FileBackend;
use crate::counter::Counter;
use crate::directory::Place;
use crate::fault::{failed, refused, unavailable};
use crate::flocked::{Flocked, Identity, Opened};
use crate::layout::{self, Content};
use crate::presence::{Grant, Written};
use crate::record::{Readers, Record};
use crate::session::Census;
use crate::turn::{self, Turn};

/// How often a lock file may be replaced under our hands.
const TRIES: u32 = 16;

enum Tried {
    Granted(Grant),
    Busy,
    /// What we locked is not the lock file any more.
    Replaced,
}

impl FileBackend {
    /// Takes the key if it is free.
    pub(crate) async fn claim(&self, claim: &Claim) -> Result<Attempt> {
        if let Some(epoch) = self.repeated(claim) {
            return Ok(Attempt::Granted { epoch: Some(epoch) });
        }
        for _ in 0..TRIES {
            match self.attempt(claim).await {
                Ok(Tried::Granted(grant)) => {
                    let epoch = Some(grant.epoch);
                    self.held().insert(claim.owner, grant);
                    return Ok(Attempt::Granted { epoch });
                }
                Ok(Tried::Busy) => return Ok(Attempt::Busy { retry_in: None }),
                Ok(Tried::Replaced) => {
                    self.follow()?;
                }
                // What cannot be done in a directory that is not the one at its path any more means nothing.
                Err(error) => {
                    if !self.follow()? {
                        return Err(error);
                    }
                }
            }
        }
        let place = self.directory.place(&claim.key);
        Err(unavailable(&place.lock, "does not stay where it is; is something cleaning up there?"))
    }

    /// The order is the protocol: lock, count, write the count down, say who we are, and as the last step look
    /// whether it is still the lock file. So nothing is granted on a file that was removed or replaced before, and
    /// whoever replaces one afterwards finds the count in it.
    async fn attempt(&self, claim: &Claim) -> Result<Tried> {
        let place = self.directory.place(&claim.key);
        let Some(opened) = self.opened(&place)? else { return Ok(Tried::Replaced) };
        let locked = match opened.attempt(claim.mode, &place.lock)? {
            Ok(locked) => locked,
            // A file that was kept open may have been replaced long ago.
            Err(busy) if !busy.is_at(&place.lock)? => return Ok(Tried::Replaced),
            Err(busy) => {
                self.idle.keep(place.lock, busy);
                return Ok(Tried::Busy);
            }
        };
        let session = self.session()?;
        let record = |epoch| self.record(claim, &session, epoch, locked.0.identity);
        let (epoch, written) = match claim.mode {
            Mode::Exclusive => {
                let (stored, _) = stored(&locked, &place)?;
                let counter = turn::count(stored, None, &place, &self.clock).await?;
                let bytes = layout::render(Some(counter), &place.key, Some(&record(counter.epoch)));
                locked.0.write(&bytes, 0, &place.lock)?;
                (counter.epoch, Written::Inside)
            }
            Mode::Shared => {
                let Some(counter) = self.count_beside_others(&locked, &place).await? else {
                    return Ok(Tried::Replaced);
                };
                let entry = Readers::new(place.readers()).write(&record(counter.epoch))?;
                (counter.epoch, Written::Apart(entry))
            }
        };
        let grant = Grant::new(claim.key.clone(), place, locked, epoch, written);
        match grant.is_in_place() {
            Ok(true) => Ok(Tried::Granted(grant)),
            Ok(false) => Ok(Tried::Replaced),
            Err(error) => {
                grant.free(&self.idle);
                Err(error)
            }
        }
    }

    /// Who we are, for whoever inspects the key.
    pub(crate) fn record<'c>(&self, claim: &'c Claim, session: &'c str, epoch: u64, file: Identity) -> Record<'c> {
        Record {
            session: session.into(),
            mode: claim.mode.into(),
            pid: self.pid,
            label: claim.label.as_deref().map(Into::into),
            reason: claim.reason.as_deref().map(Into::into),
            epoch,
            since: self.clock.unix_millis(),
            file: file.inode,
        }
    }

    fn opened(&self, place: &Place) -> Result<Option<Opened>> {
        if let Some(opened) = self.idle.take(&place.lock) {
            return Ok(Some(opened));
        }
        Opened::at(&place.lock, true)
    }

    /// Goes on in the directory that is at its path, if that is another by now and as safe. True if so.
    pub(crate) fn follow(&self) -> Result<bool> {
        let another = self.directory.follow()?;
        if another {
            self.idle.clear();
            // If the session cannot be carried over, only those who inspect are misled.
            let _ = self.sessions.follow(&self.directory.sessions());
        }
        Ok(another)
    }

    /// Counts while other readers do. `None`: not alone.
    async fn count_beside_others(&self, locked: &Flocked, place: &Place) -> Result<Option<Counter>> {
        let turn = Turn::take(&place.count()).await?;
        let (stored, complete) = stored(locked, place)?;
        let counter = turn::count(stored, Some(&turn), place, &self.clock).await?;
        if complete {
            locked.0.write(counter.to_line().as_bytes(), 0, &place.lock)?;
        } else {
            locked.0.write(&layout::render(Some(counter), &place.key, None), 0, &place.lock)?;
        }
        Ok(turn.is_ours()?.then_some(counter))
    }

    /// What this owner got before, if it still has it.
    fn repeated(&self, claim: &Claim) -> Option<u64> {
        let held = self.held();
        let grant = held.get(&claim.owner).filter(|grant| grant.key == claim.key)?;
        grant.is_in_place().unwrap_or(true).then_some(grant.epoch)
    }

    pub(crate) fn session(&self) -> Result<Arc<str>> {
        let (session, began) = self.sessions.ours()?;
        if began {
            // What cannot be swept now is swept by the next one.
            let _ = self.sweep();
        }
        Ok(session)
    }

    /// Removes what processes left behind that were killed. It is not needed for anything but tidiness.
    fn sweep(&self) -> Result<()> {
        let mut census = Census::new();
        let dead = self.sessions.dead(&mut census)?;
        if dead.is_empty() {
            return Ok(());
        }
        for name in self.directory.names()? {
            if name.ends_with(Place::READERS) {
                let readers = Readers::new(self.directory.spot(&name));
                readers.sweep(|session| self.sessions.lives(session, &mut census))?;
            }
        }
        self.sessions.bury(&dead);
        Ok(())
    }
}

/// The counter in a lock file, and whether the rest of it is there, too.
pub(crate) fn stored(locked: &Flocked, place: &Place) -> Result<(Option<Counter>, bool)> {
    let mut head = [0; layout::HEAD];
    let read = locked.0.file.read_at(&mut head, 0).map_err(|cause| failed("read", &place.lock, cause))?;
    let content = ours(&head[..read], place)?;
    Ok((content.counter, content.key.is_some()))
}

/// What a lock file says, if it is the one of this key.
pub(crate) fn ours<'b>(bytes: &'b [u8], place: &Place) -> Result<Content<'b>> {
    let Some(content) = Content::parse(bytes) else {
        return Err(refused(&place.lock, "is not a lock file; move it away"));
    };
    match content.key {
        Some(key) if key != place.key => {
            let other = crate::name::decode(key);
            let other = other.map_or_else(|| "something else".to_owned(), |other| format!("the key {other:?}"));
            Err(refused(&place.lock, &format!("is the lock file of {other}; move it away while nobody uses either")))
        }
        _ => Ok(content),
    }
}
