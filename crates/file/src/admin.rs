use std::error::Error as _;

use leasehold_core::{Cursor, Error, ErrorKind, Holder, Holders, LockKey, Mode, Page, Result};

use crate::counter::Counter;
use crate::error::{REMOVED, unavailable};
use crate::file_lock::OpenFile;
use crate::key_files::KeyFiles;
use crate::lock_file::{self, Content};
use crate::name;
use crate::open_dir::For;
use crate::record::Record;
use crate::sessions::{Liveness, LivenessCache};
use crate::store::Store;

/// Number of times that a file is read again while another process writes to it.
const READS: u32 = 4;

/// Returns the holders of the key. It takes no lock that anybody waits for, so it never makes a free key look taken.
pub(crate) fn inspect(store: &Store, key: &LockKey) -> Result<Holders> {
    store.reopen_if_replaced()?;
    let files = store.directory.key_files(key);
    let holders = match OpenFile::at(&files.lock, For::Reading)? {
        Some(lock) => holders(store, &files, &lock, &mut LivenessCache::default())?,
        None => Vec::new(),
    };
    Ok(Holders::new(key, holders))
}

/// Returns one page of the held keys, in the order of the names of their files. A page ends after 100 held keys, or
/// after 5,000 lock files.
pub(crate) fn list(store: &Store, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
    const HELD: usize = 100;
    const LOOKS: usize = 5000;
    store.reopen_if_replaced()?;
    let mut stems = stems(store)?;
    stems.retain(|stem| {
        after.is_none_or(|after| *stem > after.0)
            && name::decode(stem).is_none_or(|key| key.as_str().starts_with(prefix))
    });
    let mut page = Page::default();
    let mut liveness = LivenessCache::default();
    for (looks, stem) in stems.iter().enumerate() {
        let found = match holders_of_stem(store, stem, prefix, &mut liveness) {
            // What the file system refuses, for a cause of its own, may be a held key.
            Err(error) if is_foreign(&error) => None,
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

/// How many lock files there are, and of those that are not ours the names, and why their keys are refused.
pub(crate) fn foreign(store: &Store) -> Result<(usize, Vec<(String, Error)>)> {
    let (stems, mut liveness) = (stems(store)?, LivenessCache::default());
    let foreign = stems.iter().filter_map(|stem| {
        let refused = holders_of_stem(store, stem, "", &mut liveness).err().filter(is_foreign)?;
        Some((format!("{stem}{}", KeyFiles::LOCK), refused))
    });
    Ok((stems.len(), foreign.collect()))
}

/// Whether an error says that a file is not one of ours.
fn is_foreign(error: &Error) -> bool {
    error.kind() == ErrorKind::Backend && error.source().is_none()
}

/// The names of the lock files, without their ending and in order.
fn stems(store: &Store) -> Result<Vec<String>> {
    let stem = |name: String| Some(name.strip_suffix(KeyFiles::LOCK)?.to_owned());
    let mut stems: Vec<String> = store.directory.names()?.into_iter().filter_map(stem).collect();
    stems.sort_unstable();
    Ok(stems)
}

/// Frees the key: replaces the lock file with a new one, while the holders keep the old one open and locked.
///
/// Once the new file has its name, nothing is granted on the old one any more; so the counter is read from it then. The
/// new file is locked until the counter is in it. If this process dies before that, counting continues as if the
/// counter had been lost.
///
/// With `only`, this is undone if another than the grant with this epoch turns out to hold the old file: it came in after the look,
/// and nobody can have been granted the new file, which is still locked. If this process dies in between, that grant is lost.
pub(crate) async fn force_release(store: &Store, key: &LockKey, only: Option<u64>) -> Result<Holders> {
    store.reopen_if_replaced()?;
    let files = store.directory.key_files(key);
    let free = Holders::new(key, Vec::new());
    if !files.lock.exists()? {
        return Ok(free);
    }
    // Two at a time could each save the counter of a file that the other has replaced.
    let _alone = store.directory.lock_replacement().await?;
    let Some(old) = OpenFile::at(&files.lock, For::Writing)? else { return Ok(free) };
    files.parse(&old.read(&files.lock)?)?;
    if let Some(epoch) = only {
        // Nobody may be told of a release that does not concern them, so this comes before the first mark.
        let holders = holders(store, &files, &old, &mut LivenessCache::default())?;
        if !holds(&holders, epoch) {
            return Ok(free);
        }
        if holders.len() > 1 {
            let why = "several readers hold its file, and the kernel's lock of one cannot be taken away alone";
            return Err(Error::new(ErrorKind::Unsupported, "force-release").detail(why));
        }
        // Left by a process that died.
        files.kept().remove();
        if !files.lock.link_to(&files.kept())? {
            return Err(unavailable(&files.lock, REMOVED));
        }
    }
    let new = files.create_replacement()?;
    let mark = || old.write(&[lock_file::FORCED], lock_file::MARK_AT, &files.lock);
    if only.is_none() {
        // For a holder that looks in the next moment; and after the replacement, for one that came in between.
        mark()?;
    }
    files.replace()?;
    let holders = holders(store, &files, &old, &mut LivenessCache::default())?;
    if let Some(epoch) = only
        && !holders.is_empty()
        && !(holds(&holders, epoch) && holders.len() == 1)
    {
        files.kept().rename_to(&files.lock)?;
        return Ok(free);
    }
    files.kept().remove();
    mark()?;
    if let Some(counter) = settled_counter(&old, &files)? {
        new.file.write(counter.to_line().as_bytes(), 0, &files.lock)?;
    }
    // This process's own grants of the old file keep it open, and nobody will release them.
    store.held().retain(|_, ours| ours.key != *key || ours.is_in_place().unwrap_or(true));
    Ok(Holders::new(key, holders))
}

fn holds(holders: &[Holder], epoch: u64) -> bool {
    holders.iter().any(|holder| holder.token.is_some_and(|token| token.epoch() == epoch))
}

/// The key and holders of the lock file with this name, if its key is held and starts with `prefix`.
fn holders_of_stem(store: &Store, stem: &str, prefix: &str, liveness: &mut LivenessCache) -> Result<Option<Holders>> {
    let path = store.directory.path_to(&format!("{stem}{}", KeyFiles::LOCK));
    let Some(lock) = OpenFile::at(&path, For::Reading)? else { return Ok(None) };
    let key = name::decode(stem).or_else(|| {
        let bytes = lock.read(&path).ok()?;
        name::decode(Content::parse(&bytes)?.key?)
    });
    let Some(key) = key.filter(|key| key.as_str().starts_with(prefix)) else { return Ok(None) };
    let files = store.directory.key_files(&key);
    if files.lock.full() != path.full() {
        return Ok(None);
    }
    let holders = holders(store, &files, &lock, liveness)?;
    Ok((!holders.is_empty()).then(|| Holders::new(&key, holders)))
}

/// The live holders that the open lock file and the reader files beside it name.
fn holders(store: &Store, files: &KeyFiles, lock: &OpenFile, liveness: &mut LivenessCache) -> Result<Vec<Holder>> {
    let mut holders = Vec::new();
    for _ in 0..READS {
        let bytes = lock.read(&files.lock)?;
        let content = files.parse(&bytes)?;
        let mut writer = content.holder().filter(|writer| writer.file == lock.id.inode);
        // A writer's lock keeps a shared one out, and a reader's an exclusive one.
        let mut holds = |session: &str, excluded: Mode| match store.sessions.liveness(session, liveness)? {
            Liveness::Alive => Ok(true),
            Liveness::Dead => Ok(false),
            Liveness::Unknown => is_locked(files, lock, excluded),
        };
        if let Some(record) = &writer
            && !holds(&record.session, Mode::Shared)?
        {
            writer = None;
        }
        let readers = files.readers().live(lock.id, |session| holds(session, Mode::Exclusive))?;
        // Both a writer and readers: one came when the other went, between the two reads.
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

/// Whether the kernel keeps a lock of this mode out of the lock file. Where it does not, this holds that lock for an instant, in
/// which another is refused the key: so it is asked only where the session of a holder cannot be.
fn is_locked(files: &KeyFiles, lock: &OpenFile, mode: Mode) -> Result<bool> {
    let Some(again) = OpenFile::at(&files.lock, For::Reading)?.filter(|again| again.id == lock.id) else {
        return Ok(false);
    };
    Ok(again.try_lock(mode, &files.lock)?.is_err())
}

/// The counter in a replaced lock file, to which a process may still write that has not noticed the replacement. `None`
/// if it cannot be read.
fn settled_counter(old: &OpenFile, files: &KeyFiles) -> Result<Option<Counter>> {
    for _ in 0..READS {
        let bytes = old.read(&files.lock)?;
        if let Some(counter) = files.parse(&bytes)?.counter {
            return Ok(Some(counter));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use leasehold_core::{Attempt, Claim, FencingToken};

    use super::*;
    use crate::acquire::try_acquire;
    use crate::dir_options::DirOptions;

    fn store() -> (tempfile::TempDir, Store, LockKey, KeyFiles) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), "n", DirOptions::default()).unwrap();
        let key = LockKey::new("k").unwrap();
        let files = store.directory.key_files(&key);
        (dir, store, key, files)
    }

    async fn epoch(store: &Store, key: &LockKey) -> u64 {
        match try_acquire(store, &Claim::new(key, Mode::Exclusive, Duration::from_secs(30))).await.unwrap() {
            Attempt::Granted { epoch } => epoch.unwrap(),
            Attempt::Busy { .. } | Attempt::HeldBy { .. } | Attempt::Queued { .. } => panic!("{key:?} is taken"),
        }
    }

    #[tokio::test]
    async fn the_count_outlives_a_release_by_force_although_it_is_ahead_of_the_clock() {
        let (_dir, store, key, files) = store();
        // As after a clock that was set back: nothing but this file knows the number.
        let ahead = FencingToken::epoch_at(store.clock.since_1970()) + 1_000_000_000;
        let counter = Counter { epoch: ahead, reserved: ahead + 10 };
        fs::write(files.lock.full(), lock_file::render(Some(counter), &files.key, None)).unwrap();
        assert_eq!(epoch(&store, &key).await, ahead + 1);
        assert_eq!(force_release(&store, &key, None).await.unwrap().holders.len(), 1);
        assert_eq!(epoch(&store, &key).await, ahead + 2);
    }

    #[tokio::test]
    async fn a_release_by_force_that_was_cut_short_is_begun_anew() {
        let (_dir, store, key, files) = store();
        let before = epoch(&store, &key).await;
        fs::write(files.replacement().full(), "left over").unwrap();
        assert_eq!(force_release(&store, &key, None).await.unwrap().holders.len(), 1);
        let after = epoch(&store, &key).await;
        assert!(after > before);
        // And one that died between its two steps.
        fs::write(files.replacement().full(), lock_file::render(None, &files.key, None)).unwrap();
        fs::rename(files.replacement().full(), files.lock.full()).unwrap();
        assert!(epoch(&store, &key).await > after);
    }
}
