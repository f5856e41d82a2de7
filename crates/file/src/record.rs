use std::borrow::Cow;

use leasehold_core::{FencingToken, Holder, Mode, Result};
use serde::{Deserialize, Serialize};

use crate::error::unavailable;
use crate::file_id::FileId;
use crate::file_lock::OpenFile;
use crate::open_dir::PathAt;

/// A holder as it writes itself down, for whoever inspects the key. It decides nothing: the kernel's lock does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record<'a> {
    /// Whose life it shares: see [`Sessions`](crate::sessions::Sessions).
    pub(crate) session: Cow<'a, str>,
    pub(crate) mode: ModeName,
    pub(crate) pid: u32,
    pub(crate) label: Option<Cow<'a, str>>,
    pub(crate) reason: Option<Cow<'a, str>>,
    pub(crate) epoch: u64,
    /// Unix time in milliseconds.
    pub(crate) since: u64,
    /// The inode of the lock file that it is about: after a release by force that is another one.
    pub(crate) file: u64,
}

/// A mode in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ModeName {
    Exclusive,
    Shared,
}

impl Record<'_> {
    pub(crate) fn write_json(&self, bytes: &mut Vec<u8>) {
        serde_json::to_writer(bytes, self).expect("strings and numbers can always be written");
    }

    pub(crate) fn to_holder(&self) -> Holder {
        let mut holder = Holder::new(match self.mode {
            ModeName::Exclusive => Mode::Exclusive,
            ModeName::Shared => Mode::Shared,
        });
        holder.token = Some(FencingToken::of_epoch(self.epoch));
        holder.label = self.label.as_deref().map(str::to_owned);
        holder.reason = self.reason.as_deref().map(str::to_owned);
        holder
    }
}

impl From<Mode> for ModeName {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Exclusive => Self::Exclusive,
            Mode::Shared => Self::Shared,
        }
    }
}

/// One file for each reader of a key, called `epoch.session`: no two readers ever have the same epoch.
#[derive(Debug)]
pub(crate) struct ReaderFiles {
    dir: PathAt,
}

impl ReaderFiles {
    pub(crate) fn new(dir: PathAt) -> Self {
        Self { dir }
    }

    /// Writes a reader down; to be removed with the file that this names.
    pub(crate) fn write(&self, record: &Record<'_>) -> Result<ReaderFile> {
        let path = self.dir.below(&format!("{}.{}", record.epoch, record.session));
        let mut opened = OpenFile::at(&path, true)?;
        if opened.is_none() {
            self.dir.create_dir()?;
            opened = OpenFile::at(&path, true)?;
        }
        let Some(opened) = opened else { return Err(unavailable(&self.dir, "was removed just now")) };
        let entry = ReaderFile(path);
        let mut json = Vec::new();
        record.write_json(&mut json);
        opened.write(&json, 0, &entry.0)?;
        Ok(entry)
    }

    /// Who reads under the lock file of this id, of the sessions that live.
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
            // One that is gone by now, or not all there yet, does not hold.
            let Some(opened) = OpenFile::at(&path, false)? else { continue };
            let json = opened.read(&path)?;
            let record = serde_json::from_slice::<Record<'_>>(&json).ok();
            readers.extend(record.filter(|record| record.file == lock.inode && record.session == session));
        }
        readers.sort_by_key(|reader| reader.epoch);
        Ok(readers)
    }

    /// Removes what dead sessions left behind.
    pub(crate) fn remove_dead(&self, mut is_alive: impl FnMut(&str) -> Result<bool>) -> Result<()> {
        for (path, session) in self.entries()? {
            if !is_alive(&session)? {
                drop(ReaderFile(path));
            }
        }
        Ok(())
    }

    fn entries(&self) -> Result<Vec<(PathAt, String)>> {
        Ok(self
            .dir
            .names()?
            .into_iter()
            .filter_map(|name| {
                let (_epoch, session) = name.split_once('.')?;
                Some((self.dir.below(&name), session.to_owned()))
            })
            .collect())
    }
}

/// A reader's file; removed when dropped.
#[derive(Debug)]
pub(crate) struct ReaderFile(PathAt);

impl Drop for ReaderFile {
    fn drop(&mut self) {
        // If it cannot be removed, it ends with its session.
        self.0.remove();
    }
}
