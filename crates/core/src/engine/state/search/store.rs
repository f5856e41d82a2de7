use std::time::Duration;

use super::key_names::number_of_key;
use crate::clock::Moment;
use crate::{Attempt, Claim, GrantRef, LeaseStatus, Mode, Notification, OwnerId, Renewal, SessionId};

/// Some keys in a store that does just what `Backend` asks of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    pub(super) holders: Vec<Holder>,
    /// Its own line, first come, first served.
    pub(super) queue: Vec<QueueEntry>,
    /// How many keys there are. The epochs of each are counted on their own: that of a key is its number, modulo this.
    pub(super) keys: u8,
    pub(super) newest: u64,
    /// Owners that were released by force.
    pub(super) forced: Vec<OwnerId>,
    /// Owners of what ran out.
    pub(super) ran_out: Vec<OwnerId>,
}

#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub(super) key: u8,
    pub(super) owner: OwnerId,
    pub(super) session: Option<SessionId>,
    pub(super) mode: Mode,
    pub(super) epoch: u64,
    pub(super) ends: Moment,
}

#[derive(Clone, Debug)]
pub(super) struct QueueEntry {
    pub(super) key: u8,
    pub(super) owner: OwnerId,
    pub(super) mode: Mode,
    /// What a grant out of the line begins with.
    pub(super) lease: Duration,
    /// The place is lost then, unless the claim is made again.
    pub(super) until: Moment,
}

/// What a store says of a grant that is not the one that is asked about.
fn not_held(forced: &[OwnerId], owner: OwnerId) -> LeaseStatus {
    if forced.contains(&owner) { LeaseStatus::ForceReleased } else { LeaseStatus::NotHeld }
}

impl Store {
    /// What the passing of time does. Grants out of the line are told.
    pub(super) fn settle(&mut self, now: Moment) -> Vec<(u8, Notification)> {
        self.ran_out.extend(self.holders.extract_if(.., |holder| holder.ends <= now).map(|holder| holder.owner));
        self.queue.retain(|place| place.until > now);
        let mut granted = Vec::new();
        while let Some(first) = self.queue.iter().position(|place| self.is_next(place)) {
            let first = self.queue.remove(first);
            let epoch = self.begin(first.key, first.owner, None, first.mode, now.plus(first.lease));
            granted.push((first.key, Notification::Granted { owner: first.owner, epoch: Some(epoch) }));
        }
        granted
    }

    pub(super) fn claim(
        &mut self,
        now: Moment,
        claim: &Claim,
        session: Option<SessionId>,
        queue: Option<Queue>,
    ) -> Attempt {
        if let Some(ours) = self.holders.iter().find(|holder| holder.owner == claim.owner) {
            return Attempt::Granted { epoch: Some(ours.epoch) };
        }
        let ends = now.plus(claim.ttl);
        let key = number_of_key(&claim.key);
        let joins = |holder: &&Holder| holder.key == key && session.is_some() && holder.session == session;
        let level = self.holders.iter().find(joins).cloned();
        if let Some(level) = level.filter(|level| claim.lost.is_none_or(|lost| lost < level.epoch)) {
            let of_key = self.holders.iter_mut().filter(|holder| holder.key == key);
            of_key.for_each(|holder| holder.ends = holder.ends.max(ends));
            self.holders.push(Holder { owner: claim.owner, ends: level.ends.max(ends), ..level });
            return Attempt::Granted { epoch: Some(level.epoch) };
        }
        let waits_already = self.queue.iter().any(|place| place.owner == claim.owner);
        let nobody_waits = self.queue.iter().all(|place| place.key != key);
        if self.is_free_for(key, claim.mode) && (nobody_waits || waits_already) {
            self.queue.retain(|place| place.owner != claim.owner);
            return Attempt::Granted { epoch: Some(self.begin(key, claim.owner, session, claim.mode, ends)) };
        }
        let of_key = || self.holders.iter().filter(|holder| holder.key == key);
        let retry_in = of_key().map(|holder| holder.ends.since(now)).max();
        match (queue, of_key().next().and_then(|holder| holder.session)) {
            (Some(queue), _) if claim.waits => {
                let until = now.plus(queue.keeps);
                match self.queue.iter_mut().find(|place| place.owner == claim.owner) {
                    Some(place) => place.until = until,
                    None => {
                        self.queue.push(QueueEntry {
                            key,
                            owner: claim.owner,
                            mode: claim.mode,
                            lease: queue.lease,
                            until,
                        });
                    }
                }
                Attempt::Queued {
                    epoch_of_holder: Some(self.newest),
                    latest_epoch: None,
                    retry_in: queue.keeps / 3 * 2,
                    notifies: queue.notifies,
                    lease: queue.lease,
                }
            }
            (_, Some(session)) => Attempt::HeldBy { session, retry_in },
            _ => Attempt::Busy { retry_in },
        }
    }

    pub(super) fn renew(&mut self, now: Moment, renewal: &Renewal, session: Option<SessionId>) -> LeaseStatus {
        let Renewal { grant, ttl } = renewal;
        let of_session = session.is_some();
        let mut found = false;
        for holder in &mut self.holders {
            let same = if of_session {
                holder.session == session
                    && Some(holder.epoch) == grant.epoch
                    && holder.key == number_of_key(&grant.key)
            } else {
                holder.owner == grant.owner && Some(holder.epoch) == grant.epoch
            };
            if same {
                found = true;
                holder.ends = holder.ends.max(now.plus(*ttl));
            }
        }
        if found { LeaseStatus::Held } else { not_held(&self.forced, grant.owner) }
    }

    /// Frees what the owner has, or takes it out of the line.
    pub(super) fn release(&mut self, grant: &GrantRef) -> LeaseStatus {
        self.queue.retain(|place| place.owner != grant.owner);
        let before = self.holders.len();
        self.holders.retain(|holder| holder.owner != grant.owner);
        if self.holders.len() < before { LeaseStatus::Held } else { not_held(&self.forced, grant.owner) }
    }

    /// Gives a lock to a new owner, if the old one has it.
    pub(super) fn take_over(
        &mut self,
        now: Moment,
        grant: &GrantRef,
        new_owner: OwnerId,
        ttl: Duration,
    ) -> LeaseStatus {
        let its = |holder: &&mut Holder| [grant.owner, new_owner].contains(&holder.owner);
        match self.holders.iter_mut().find(its).filter(|holder| Some(holder.epoch) == grant.epoch) {
            Some(holder) => {
                holder.owner = new_owner;
                holder.ends = holder.ends.max(now.plus(ttl));
                LeaseStatus::Held
            }
            None => not_held(&self.forced, grant.owner),
        }
    }

    /// Makes a reader of a writer, if there is that.
    pub(super) fn downgrade(&mut self, now: Moment, writer: &GrantRef, claim: &Claim) -> Attempt {
        let its = |holder: &Holder| holder.owner == writer.owner && Some(holder.epoch) == writer.epoch;
        let Some(index) = self.holders.iter().position(its) else { return Attempt::Busy { retry_in: None } };
        self.holders.remove(index);
        let epoch = self.begin(number_of_key(&claim.key), claim.owner, None, claim.mode, now.plus(claim.ttl));
        Attempt::Granted { epoch: Some(epoch) }
    }

    /// Frees a key, and says who it was.
    pub(super) fn force(&mut self, key: u8) -> Vec<OwnerId> {
        let evicted: Vec<_> =
            self.holders.extract_if(.., |holder| holder.key == key).map(|holder| holder.owner).collect();
        self.forced.extend(&evicted);
        evicted
    }

    /// Loses all keys, and with a restart the line too. The counter stays.
    pub(super) fn forget(&mut self, line_too: bool) -> Vec<OwnerId> {
        if line_too {
            self.queue.clear();
        }
        self.holders.drain(..).map(|holder| holder.owner).collect()
    }

    /// Of which key an epoch is.
    pub(super) fn key_of(&self, epoch: u64) -> u8 {
        u8::try_from(epoch % u64::from(self.keys)).unwrap()
    }

    /// Whether it is the turn of a place in the line.
    fn is_next(&self, place: &QueueEntry) -> bool {
        let first =
            self.queue.iter().find(|other| other.key == place.key).is_some_and(|first| first.owner == place.owner);
        first && self.is_free_for(place.key, place.mode)
    }

    fn is_free_for(&self, key: u8, mode: Mode) -> bool {
        let beside = |holder: &Holder| mode == Mode::Shared && holder.mode == Mode::Shared;
        self.holders.iter().filter(|holder| holder.key == key).all(beside)
    }

    fn begin(&mut self, key: u8, owner: OwnerId, session: Option<SessionId>, mode: Mode, ends: Moment) -> u64 {
        self.newest += 1;
        while self.key_of(self.newest) != key {
            self.newest += 1;
        }
        self.holders.push(Holder { key, owner, session, mode, epoch: self.newest, ends });
        self.newest
    }
}

/// How a store with a line of its own treats a claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// How long a place stays without the claim being made again.
    pub(super) keeps: Duration,
    pub(super) lease: Duration,
    /// The claimant listens.
    pub(super) notifies: bool,
}
