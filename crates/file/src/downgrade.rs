use leasehold_core::{Attempt, Claim, GrantRef, Mode, Result};

use crate::counter::Counter;
use crate::counter_lock;
use crate::error::unavailable;
use crate::grant::{Grant, RecordLocation};
use crate::key_files::KeyFiles;
use crate::lock_file;
use crate::store::Store;

/// Makes a writer a reader: replaces the writer's lock file with a new one, which is locked for the reader before it gets
/// the lock file's name. The lock of one file cannot be changed instead: the kernel may grant it to another process
/// while it is changed from exclusive to shared.
pub(crate) async fn downgrade(store: &Store, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
    store.reopen_if_replaced()?;
    let files = store.directory.key_files(&claim.key);
    // As for a forced release: two at a time could each save the counter of a file that the other has replaced.
    let _alone = store.directory.lock_replacement().await?;
    let gone = Ok(Attempt::Busy { retry_in: None });
    let stored = with_writer(store, writer, |ours| Ok(files.read_counter(&ours.lock)?.0))?;
    let Some(stored) = stored else { return gone };
    let counter = if let Some(counter) = counter_lock::next_counter(stored, None, &files, &store.clock).await? {
        counter
    } else {
        // A writer that cannot wait for the clock counts one further than a claim may.
        let stored = stored.ok_or_else(|| unavailable(&files.lock, "has lost its counter"))?;
        Counter { epoch: stored.epoch + 1, ..stored }
    };
    // The writer's grant is kept until the new file has its name, so that it can be released if this fails.
    let replaced = with_writer(store, writer, |_| replace_lock_file(store, claim, files, counter))?;
    let Some(reader) = replaced else { return gone };
    let mut held = store.held();
    held.remove(&writer.owner);
    held.insert(claim.owner, reader);
    Ok(Attempt::Granted { epoch: Some(counter.epoch) })
}

fn replace_lock_file(store: &Store, claim: &Claim, files: KeyFiles, counter: Counter) -> Result<Grant> {
    let (session, new) = (store.session()?, files.create_replacement()?);
    new.file.write(&lock_file::render(Some(counter), &files.key, None), 0, &files.replacement())?;
    let Ok(new) = new.file.try_lock(Mode::Shared, &files.replacement())? else {
        return Err(unavailable(files.replacement(), "is being used by another"));
    };
    let record = store.record(claim, &session, counter.epoch, new.file.id);
    let reader = files.readers().write(&record)?;
    files.replace()?;
    Ok(Grant::new(claim.key.clone(), files, new, counter.epoch, RecordLocation::ReaderFile(reader)))
}

/// Calls `then` with the writer's grant if this process still holds it. `None` if it does not.
fn with_writer<T>(store: &Store, writer: &GrantRef, then: impl FnOnce(&Grant) -> Result<T>) -> Result<Option<T>> {
    let held = store.held();
    let is_it = |ours: &&Grant| ours.key == writer.key && Some(ours.epoch) == writer.epoch && ours.is_writer();
    match held.get(&writer.owner).filter(is_it) {
        Some(ours) if ours.is_in_place()? => then(ours).map(Some),
        _ => Ok(None),
    }
}
