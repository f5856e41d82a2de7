use leasehold_core::{Attempt, Claim, GrantRef, Mode, Result};

use crate::FileBackend;
use crate::acquire::stored;
use crate::admin::fresh;
use crate::counter::Counter;
use crate::directory::Place;
use crate::fault::unavailable;
use crate::layout;
use crate::presence::{Grant, Written};
use crate::record::Readers;
use crate::turn;

impl FileBackend {
    /// Puts a new lock file in the place of the writer's, which is locked for a reader before it is there: the kernel may
    /// give a lock to another while it is changed from exclusive to shared.
    pub(crate) async fn writer_to_reader(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        self.follow()?;
        let place = self.directory.place(&claim.key);
        // As for a release by force: two at a time could each save the count of a file that the other has replaced.
        let _alone = self.directory.replacing().await?;
        let gone = Ok(Attempt::Busy { retry_in: None });
        let Some(stored) = self.held_by(writer, |ours| Ok(stored(&ours.locked, &place)?.0))? else { return gone };
        let counter = turn::count(stored, None, &place, &self.clock).await?;
        // Until the new file is in its place the writer stays with us, so that it is released if this comes to nothing.
        let replaced = self.held_by(writer, |_| self.replace_for(claim, place, counter))?;
        let Some(reader) = replaced else { return gone };
        let mut held = self.held();
        held.remove(&writer.owner);
        held.insert(claim.owner, reader);
        Ok(Attempt::Granted { epoch: Some(counter.epoch) })
    }

    fn replace_for(&self, claim: &Claim, place: Place, counter: Counter) -> Result<Grant> {
        let (session, fresh) = (self.session()?, fresh(&place)?);
        fresh.0.write(&layout::render(Some(counter), &place.key, None), 0, &place.fresh())?;
        let Ok(fresh) = fresh.0.attempt(Mode::Shared, &place.fresh())? else {
            return Err(unavailable(place.fresh(), "is being used by another"));
        };
        let record = self.record(claim, &session, counter.epoch, fresh.0.identity);
        let entry = Readers::new(place.readers()).write(&record)?;
        if !place.fresh().replace(&place.lock)? {
            return Err(unavailable(place.fresh(), "was removed just now"));
        }
        Ok(Grant::new(claim.key.clone(), place, fresh, counter.epoch, Written::Apart(entry)))
    }

    /// What comes of it if this writer is ours, and its file is the lock file.
    fn held_by<T>(&self, writer: &GrantRef, then: impl FnOnce(&Grant) -> Result<T>) -> Result<Option<T>> {
        let held = self.held();
        let is_it = |ours: &&Grant| ours.key == writer.key && Some(ours.epoch) == writer.epoch && ours.is_writer();
        match held.get(&writer.owner).filter(is_it) {
            Some(ours) if ours.is_in_place()? => then(ours).map(Some),
            _ => Ok(None),
        }
    }
}
