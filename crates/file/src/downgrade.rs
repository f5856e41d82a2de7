use leasehold_core::{Attempt, Claim, GrantRef, Mode, Result};

use crate::FileBackend;
use crate::acquire::stored;
use crate::admin::fresh;
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
        // Whatever goes wrong from here on, the writer's lock ends with this function.
        let Some(ours) = self.taken_from(writer) else { return Ok(Attempt::Busy { retry_in: None }) };
        if !ours.is_in_place()? {
            return Ok(Attempt::Busy { retry_in: None });
        }
        let (session, fresh) = (self.session()?, fresh(&place)?);
        let (stored, _) = stored(&ours.locked, &place)?;
        let counter = turn::count(stored, None, &place, &self.clock).await?;
        fresh.0.write(&layout::render(Some(counter), &place.key, None), 0, &place.fresh())?;
        let Ok(fresh) = fresh.0.attempt(Mode::Shared, &place.fresh())? else {
            return Err(unavailable(place.fresh(), "is being used by another"));
        };
        let record = self.record(claim, &session, counter.tenure, fresh.0.identity);
        let entry = Readers::new(place.readers()).write(&record)?;
        if !place.fresh().replace(&place.lock)? {
            return Err(unavailable(place.fresh(), "was removed just now"));
        }
        let grant = Grant::new(claim.key.clone(), place, fresh, counter.tenure, Written::Apart(entry));
        self.held().insert(claim.owner, grant);
        Ok(Attempt::Granted { tenure: Some(counter.tenure) })
    }

    /// What this process has of a writer, which nobody else finds from then on.
    fn taken_from(&self, writer: &GrantRef) -> Option<Grant> {
        let mut held = self.held();
        let is_it = |ours: &&Grant| ours.key == writer.key && Some(ours.tenure) == writer.tenure && ours.is_writer();
        held.get(&writer.owner).filter(is_it)?;
        held.remove(&writer.owner)
    }
}
