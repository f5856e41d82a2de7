use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::load::{Contender, Result};

/// Opens a file, locks it, writes into it who did; unlocks it by closing it.
pub(crate) struct RawFile {
    folder: PathBuf,
}

impl RawFile {
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        Ok(Self { folder: folder.to_path_buf() })
    }
}

impl Contender for RawFile {
    type Key = PathBuf;
    type Held = File;

    fn key(&self, name: &str) -> Result<PathBuf> {
        Ok(self.folder.join(name.replace('/', "-")))
    }

    async fn acquire(&self, key: &PathBuf) -> Result<File> {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(key)?;
        flock(&file, FlockOperation::LockExclusive)?;
        file.write_all(b"{\"holder\":\"the process that holds the lock, and since when\"}\n")?;
        Ok(file)
    }

    async fn release(&self, held: File) -> Result<()> {
        flock(&held, FlockOperation::Unlock)?;
        Ok(())
    }
}
