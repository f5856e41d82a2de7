use leasehold_core::{Cursor, ErrorKind, Holder, Holders, LockKey, Mode, Page, Result};

use crate::FileBackend;
use crate::acquire::ours;
use crate::counter::Counter;
use crate::directory::Place;
use crate::fault::{failed, unavailable};
use crate::flocked::{Flocked, Opened};
use crate::layout::{self, Content};
use crate::name;
use crate::record::{Readers, Record};
use crate::session::Census;

/// How often a file is read again that is being written.
const SETTLES: u32 = 4;

impl FileBackend {
    /// Who holds the key. Takes no lock that anybody waits for, so nobody who tries to acquire finds it taken by us.
    pub(crate) fn look_at(&self, key: &LockKey) -> Result<Holders> {
        self.follow()?;
        let place = self.directory.place(key);
        let holders = match Opened::at(&place.lock, false)? {
            Some(lock) => self.holders(&place, &lock, &mut Census::new())?,
            None => Vec::new(),
        };
        Ok(Holders { key: key.clone(), holders })
    }

    /// One page of the held keys, in the order of the names of their files.
    pub(crate) fn page(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        const HELD: usize = 100;
        const LOOKS: usize = 5000;
        self.follow()?;
        let mut stems = self.directory.names()?;
        stems.retain_mut(|name| {
            let Some(stem) = name.strip_suffix(Place::LOCK) else { return false };
            let decoded = name::decode(stem);
            let wanted = after.is_none_or(|after| stem > after.0.as_str())
                && decoded.is_none_or(|key| key.as_str().starts_with(prefix));
            name.truncate(stem.len());
            wanted
        });
        stems.sort_unstable();
        let mut page = Page::default();
        let mut census = Census::new();
        for (looks, stem) in stems.iter().enumerate() {
            let found = match self.found(stem, prefix, &mut census) {
                // What is not ours is no held key.
                Err(error) if error.kind() == ErrorKind::Backend => None,
                found => found?,
            };
            page.keys.extend(found);
            let full = page.keys.len() == HELD || looks + 1 == LOOKS;
            if full && looks + 1 < stems.len() {
                page.next = Some(Cursor(stem.clone()));
                break;
            }
        }
        Ok(page)
    }

    /// Puts a new lock file in the place of the old one, which its holders have locked and keep.
    ///
    /// Once the new one is there, nothing is granted on the old one any more; so the count is read from it then. The
    /// new one is locked until the count is in it. If we die before that, the count goes on as if it had been lost.
    pub(crate) async fn take_away(&self, key: &LockKey) -> Result<Holders> {
        self.follow()?;
        let place = self.directory.place(key);
        let free = Holders { key: key.clone(), holders: Vec::new() };
        if !place.lock.is_there()? {
            return Ok(free);
        }
        // Two at a time could each save the count of a file that the other has replaced.
        let _alone = self.directory.replacing().await?;
        let Some(old) = Opened::at(&place.lock, false)? else { return Ok(free) };
        ours(&old.read(&place.lock)?, &place)?;
        let fresh = fresh(&place)?;
        // Before, for a holder that looks in the next moment; and after, for one that came in between.
        old.write(&[layout::FORCED], layout::MARK_AT, &place.lock)?;
        if !place.fresh().replace(&place.lock)? {
            return Err(unavailable(place.fresh(), "was removed just now"));
        }
        old.write(&[layout::FORCED], layout::MARK_AT, &place.lock)?;
        if let Some(counter) = settled_counter(&old, &place)? {
            fresh.0.write(counter.to_line().as_bytes(), 0, &place.lock)?;
        }
        let holders = self.holders(&place, &old, &mut Census::new())?;
        // What this process had of it keeps a file open, and nobody gives that back.
        self.held().retain(|_, ours| ours.key != *key || ours.is_in_place().unwrap_or(true));
        Ok(Holders { holders, ..free })
    }

    fn found(&self, stem: &str, prefix: &str, census: &mut Census) -> Result<Option<Holders>> {
        let path = self.directory.spot(&format!("{stem}{}", Place::LOCK));
        let Some(lock) = Opened::at(&path, false)? else { return Ok(None) };
        let key = name::decode(stem).or_else(|| {
            let bytes = lock.read(&path).ok()?;
            name::decode(Content::parse(&bytes)?.key?)
        });
        let Some(key) = key.filter(|key| key.as_str().starts_with(prefix)) else { return Ok(None) };
        let place = self.directory.place(&key);
        if place.lock.path() != path.path() {
            return Ok(None);
        }
        let holders = self.holders(&place, &lock, census)?;
        Ok((!holders.is_empty()).then_some(Holders { key, holders }))
    }

    /// The holders of the lock file that is open here.
    fn holders(&self, place: &Place, lock: &Opened, census: &mut Census) -> Result<Vec<Holder>> {
        let mut holders = Vec::new();
        for _ in 0..SETTLES {
            let bytes = lock.read(&place.lock)?;
            let content = ours(&bytes, place)?;
            let mut writer = content.holder().filter(|writer| writer.file == lock.identity.inode);
            if let Some(record) = &writer
                && !self.sessions.lives(&record.session, census)?
            {
                writer = None;
            }
            let readers =
                Readers::new(place.readers()).live(lock.identity, |session| self.sessions.lives(session, census))?;
            // Both: one came when the other went, between our two looks.
            let settled = !content.is_unsettled() && (writer.is_none() || readers.is_empty());
            holders = match writer {
                Some(writer) => vec![writer.to_holder()],
                None => readers.iter().map(Record::to_holder).collect(),
            };
            if settled {
                break;
            }
        }
        Ok(holders)
    }
}

/// A new lock file beside the place of the real one: locked by us, of its full size, so that the count fits into it
/// even when the disk is full, and without a count that could be read.
pub(crate) fn fresh(place: &Place) -> Result<Flocked> {
    let path = place.fresh();
    let opened = Opened::at(&path, true)?.ok_or_else(|| unavailable(&path, "was removed just now"))?;
    let Ok(fresh) = opened.attempt(Mode::Exclusive, &path)? else {
        return Err(unavailable(&path, "is being used by another"));
    };
    fresh.0.file.set_len(0).map_err(|cause| failed("write", &path, cause))?;
    fresh.0.write(&layout::render(None, &place.key, None), 0, &path)?;
    Ok(fresh)
}

/// The count in a file in which somebody may be writing who does not know yet that it was replaced.
fn settled_counter(old: &Opened, place: &Place) -> Result<Option<Counter>> {
    for _ in 0..SETTLES {
        let bytes = old.read(&place.lock)?;
        if let Some(counter) = ours(&bytes, place)?.counter {
            return Ok(Some(counter));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use leasehold_core::{Attempt, Backend, Claim};

    use super::*;

    async fn epoch(backend: &FileBackend, key: &LockKey) -> u64 {
        match backend.try_acquire(&Claim::new(key, Mode::Exclusive, Duration::from_secs(30))).await.unwrap() {
            Attempt::Granted { epoch } => epoch.unwrap(),
            Attempt::Busy { .. } | Attempt::HeldBy { .. } | Attempt::Queued { .. } => panic!("{key:?} is taken"),
        }
    }

    #[tokio::test]
    async fn the_count_outlives_a_release_by_force_although_it_is_ahead_of_the_clock() {
        let dir = tempfile::tempdir().unwrap();
        let backend = FileBackend::open(dir.path(), "n").unwrap();
        let key = LockKey::new("k").unwrap();
        let place = backend.directory.place(&key);
        // As after a clock that was set back: nothing but this file knows the number.
        let ahead = backend.clock.unix_millis() + 1_000_000_000;
        let counter = Counter { epoch: ahead, reserved: ahead + 10 };
        fs::write(place.lock.path(), layout::render(Some(counter), &place.key, None)).unwrap();
        assert_eq!(epoch(&backend, &key).await, ahead + 1);
        assert_eq!(backend.force_release(&key).await.unwrap().holders.len(), 1);
        assert_eq!(epoch(&backend, &key).await, ahead + 2);
    }

    #[tokio::test]
    async fn a_release_by_force_that_was_cut_short_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let backend = FileBackend::open(dir.path(), "n").unwrap();
        let key = LockKey::new("k").unwrap();
        let place = backend.directory.place(&key);
        let before = epoch(&backend, &key).await;
        fs::write(place.fresh().path(), "left over").unwrap();
        assert_eq!(backend.force_release(&key).await.unwrap().holders.len(), 1);
        let after = epoch(&backend, &key).await;
        assert!(after > before);
        // And one that died between its two steps.
        fs::write(place.fresh().path(), layout::render(None, &place.key, None)).unwrap();
        fs::rename(place.fresh().path(), place.lock.path()).unwrap();
        assert!(epoch(&backend, &key).await > after);
    }
}
