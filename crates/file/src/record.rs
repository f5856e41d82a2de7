use std::borrow::Cow;

use leasehold_core::{Holder, Mode, Result};
use serde::{Deserialize, Serialize};

use crate::error::{REMOVED, unavailable};
use crate::file_id::FileId;
use crate::file_lock::OpenFile;
use crate::open_dir::{For, PathAt};

/// The record of a holder, which `inspect` and `list` show. It does not decide who holds the key: the kernel's lock does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record<'a> {
    /// The session of the holder's process. The record counts while that session is alive: see
    /// [`Sessions`](crate::sessions::Sessions).
    pub(crate) session: Cow<'a, str>,
    pub(crate) mode: Mode,
    pub(crate) pid: u32,
    pub(crate) label: Option<Cow<'a, str>>,
    pub(crate) reason: Option<Cow<'a, str>>,
    pub(crate) epoch: u64,
    /// The time of the grant: Unix time in milliseconds.
    pub(crate) since: u64,
    /// The inode of the lock file that was locked. After a forced release the key has another lock file, so the record does
    /// not count any more.
    pub(crate) file: u64,
}

impl Record<'_> {
    pub(crate) fn write_json(&self, bytes: &mut Vec<u8>) {
        serde_json::to_writer(bytes, self).expect("strings and numbers can always be written");
    }

    pub(crate) fn to_holder(&self) -> Holder {
        let mut holder = Holder::of_epoch(self.mode, self.epoch);
        holder.label = self.label.as_deref().map(str::to_owned);
        holder.reason = self.reason.as_deref().map(str::to_owned);
        holder
    }
}

/// The directory with the records of a key's readers. Each record is a file named `EPOCH-INODE.SESSION`. No two readers of one lock
/// file have the same epoch. A claim on a lock file that was replaced can draw an epoch that is drawn again on the next file: without
/// the inode, it would then remove the record of the reader that was granted it.
#[derive(Debug)]
pub(crate) struct ReaderFiles(pub(crate) PathAt);

impl ReaderFiles {
    /// Writes the record of a reader. Dropping the result removes the file.
    pub(crate) fn write(&self, record: &Record<'_>) -> Result<ReaderFile> {
        let path = self.0.below(&format!("{}-{}.{}", record.epoch, record.file, record.session));
        let mut opened = OpenFile::at(&path, For::Creating)?;
        if opened.is_none() {
            self.0.create_dir()?;
            opened = OpenFile::at(&path, For::Creating)?;
        }
        let Some(opened) = opened else { return Err(unavailable(&self.0, REMOVED)) };
        let entry = ReaderFile(path);
        let mut json = Vec::new();
        record.write_json(&mut json);
        opened.write(&json, 0, &entry.0)?;
        Ok(entry)
    }

    /// The records of readers of the lock file `lock` whose sessions are alive, ordered by epoch.
    pub(crate) fn live(
        &self,
        lock: FileId,
        mut is_alive: impl FnMut(&str) -> Result<bool>,
    ) -> Result<Vec<Record<'static>>> {
        let mut readers = Vec::new();
        for (path, session) in self.entries()? {
            if !is_alive(&session)? {
                continue;
            }
            // A record that was removed meanwhile, or is not yet written completely, does not count.
            let Some(opened) = OpenFile::at(&path, For::Reading)? else { continue };
            let json = opened.read(&path)?;
            let record = serde_json::from_slice::<Record<'_>>(&json).ok();
            readers.extend(record.filter(|record| record.file == lock.inode && record.session == session));
        }
        readers.sort_by_key(|reader| reader.epoch);
        Ok(readers)
    }

    /// Removes the records of sessions that are dead.
    pub(crate) fn remove_if(&self, mut is_dead: impl FnMut(&str) -> Result<bool>) -> Result<()> {
        for (path, session) in self.entries()? {
            if is_dead(&session)? {
                drop(ReaderFile(path));
            }
        }
        Ok(())
    }

    fn entries(&self) -> Result<Vec<(PathAt, String)>> {
        let entry = |name: String| {
            let (_of_the_grant, session) = name.split_once('.')?;
            Some((self.0.below(&name), session.to_owned()))
        };
        Ok(self.0.names()?.into_iter().filter_map(entry).collect())
    }
}

/// The file with a reader's record. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ReaderFile(PathAt);

impl Drop for ReaderFile {
    fn drop(&mut self) {
        // If it cannot be removed, it counts for nothing once its session ends.
        self.0.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_dir::OpenDir;

    #[test]
    fn a_claim_that_came_to_nothing_takes_away_its_own_record_alone() {
        let dir = tempfile::tempdir().unwrap();
        let readers = ReaderFiles(OpenDir::open(dir.path()).unwrap().path_to("k.readers"));
        let on = |inode| Record {
            session: "s".into(),
            mode: Mode::Shared,
            pid: 1,
            label: None,
            reason: None,
            epoch: 7,
            since: 0,
            file: inode,
        };
        // The second claim draws the epoch of the first one, whose lock file was replaced meanwhile.
        let lock = FileId::found_at(dir.path()).unwrap().unwrap();
        let (replaced, now) = (on(lock.inode + 1), on(lock.inode));
        let (replaced, granted) = (readers.write(&replaced).unwrap(), readers.write(&now).unwrap());
        drop(replaced);
        assert_eq!(readers.live(lock, |_| Ok(true)).unwrap(), [now]);
        drop(granted);
        assert_eq!(readers.live(lock, |_| Ok(true)).unwrap(), []);
    }
}
