//! Files in a directory.

use leasehold_file::FileLocks;

use super::exemptions::Exemption;
use super::setup::{Setup, Stays, TTL_MS};
use crate::fault::Fault;
use crate::locks::Locks;
use crate::stores;

pub(super) static SETUP: Setup = Setup {
    name: "file",
    backend: "file",
    in_words: "A directory that several processes use.",
    start: |folder, _| stores::start_file(folder),
    connect: |url| Box::pin(async move { Ok(Locks::shared(FileLocks::connect(url).await?)) }),
    repair: None,
    ttl_ms: TTL_MS,
    deck: &[&[Fault::ForceRelease, Fault::RemoveLockFile, Fault::DiskFull]],
    either: None,
    exempt: &[Exemption::until_noticed(Fault::RemoveLockFile, "the holder learns of it at its next check")],
    // The lock file; the folder of the readers, and the second copy of the counter.
    stays: Stays { entries: 1, more_of_readers: 2, bytes: 0 },
};
