//! What must hold after every step.

use super::super::check::LeaseNote;
use super::super::event::{Batch, End, Granted, GuardRef, LeaseCell, Request};
use super::super::key::Key;
use super::super::keys::KeyEntry;
use super::super::lease::{GuardEntry, Lease};
use super::super::pending::{PendingClaim, PendingRelease};
use super::super::{RequestId, State, WaiterId};
use super::key_names::{name_of, number_of_key};
use super::world::{Asks, At, Checked, Flight, Handle, Property, Seat, TTL, Token, Wants, World, broken, units};
use crate::clock::{Moment, lease_deadline};
use crate::{LockKey, Mode, OwnerId, SessionId};

/// A guard that believes that it holds the key.
#[derive(Debug)]
struct Believer {
    key: LockKey,
    owner: OwnerId,
    mode: Mode,
    session: Option<SessionId>,
    epoch: u64,
}

impl World {
    pub(super) fn check(&mut self) -> Checked {
        for side in &self.sides {
            side.check(self.now).or_else(|what| broken(Property::Structure, what))?;
        }
        self.forget_rests();
        self.check_exclusion()?;
        self.check_guards()?;
        self.check_cells()
    }

    /// Where nobody is left, nobody has to go first.
    fn forget_rests(&mut self) {
        for side in 0..self.sides.len() {
            for key in (0..self.config.keys).map(name_of) {
                if self.sides[side].keys.get(&key).is_none() {
                    *self.rest(side, &key) = None;
                }
            }
        }
    }

    /// A token is given once; who holds the key alone has a larger one than all before; and nobody's is smaller than that
    /// of somebody who had one before it came.
    pub(super) fn handed_out(
        &mut self,
        member: usize,
        token: Token,
        offer: &Granted<LeaseNote>,
        floor: Token,
    ) -> Checked {
        let mode = offer.cell.mode();
        let believed = self.believes(offer.cell.id) && !self.evicted.contains(&offer.owner);
        if self.lost.contains(&(member, token.0)) {
            return broken(Property::Tokens, format!("{token:?} is given after another guard heard that it is lost"));
        }
        // All levels of a session have one token, whichever of its engines they are of.
        if let Some(session) = self.members[member].2 {
            if self.sessions.contains(&(token.0, session)) {
                self.seen.push("a session takes the key again");
                return Ok(());
            }
            self.sessions.push((token.0, session));
        }
        if self.tokens.contains(&token) {
            return broken(Property::Tokens, format!("{token:?} is given twice"));
        }
        if token < floor && !self.evicted.contains(&offer.owner) {
            return broken(Property::Tokens, format!("{token:?} is given to one who came after {floor:?} was given"));
        }
        let newest = self.newest_token(self.store.key_of(token.0));
        if mode == Mode::Exclusive && believed && token < newest {
            return broken(Property::Tokens, format!("{token:?} is given after {newest:?}"));
        }
        if mode == Mode::Shared && token.1 > 0 {
            self.seen.push("a reader shares another's grant");
        }
        self.tokens.push(token);
        Ok(())
    }

    /// What a guard is offered lasts, and is what it may have.
    pub(super) fn is_well_born(&mut self, side: usize, seat: usize, granted: &Granted<LeaseNote>) -> Checked {
        let limit = self.cell(side, &granted.cell).limit;
        let At::Waiting { wants, .. } = self.seats[seat].at else { return Ok(()) };
        if granted.number > 0 && granted.cell.mode() == Mode::Exclusive && wants == Wants::Key {
            // A lease out of the store's queue begins with another length.
            let length = self.queue(side, number_of_key(granted.cell.key())).map_or(units(TTL), |queue| queue.lease);
            if limit.since(self.now) <= length / 4 {
                return broken(Property::Birth, "a lease that is almost over is handed off");
            }
            let asks = |flight: &Flight| match &flight.asks {
                // What left before, or with, what was confirmed since says nothing new.
                Asks::Store(Request::Renew(Batch { leases, sent_at, .. })) => {
                    let newer = lease_deadline(*sent_at, units(TTL)) > limit;
                    newer && flight.side == side && !flight.unheard && leases.contains(&granted.guard.lease)
                }
                _ => false,
            };
            if self.flights.iter().any(asks) {
                return broken(Property::Birth, "a lease is handed off while a renewal is under way");
            }
            if granted.number > self.config.handoffs {
                return broken(Property::Tokens, "the count of hand-offs is beyond its bound");
            }
        }
        let options = self.options(seat);
        let key = self.sides[side].keys.get(granted.cell.key());
        let entry = key.and_then(|key| {
            key.leases().iter().flat_map(|lease| &lease.guards).find(|known| known.id == granted.guard.guard).cloned()
        });
        let wanted = if wants == Wants::Downgrade { Mode::Shared } else { self.config.seats[seat].mode };
        let is_other = |entry: &GuardEntry| {
            entry.renew != options.renew || (entry.cap < Moment::NEVER) != options.max_hold.is_some()
        };
        if granted.cell.mode() != wanted || entry.as_ref().is_some_and(is_other) {
            return broken(Property::Birth, "a caller is given what it did not ask for");
        }
        Ok(())
    }

    /// Whether a guard of this session is still there that heard that it is lost.
    pub(super) fn stands_on_lost(&self, member: usize, key: &LockKey) -> bool {
        let lost = |seat: &Seat| match &seat.at {
            At::Holding { cell, .. } => {
                self.cells.iter().any(|known| known.id == *cell && matches!(known.end, Some(End::Lost(_))))
            }
            _ => false,
        };
        let of_it = |index: usize| self.config.seats[index].member == member && self.key_of(index) == *key;
        self.members[member].2.is_some()
            && self.seats.iter().enumerate().any(|(index, seat)| of_it(index) && lost(seat))
    }

    /// The last hand-off that is allowed was made, and somebody waits here.
    pub(super) fn begins_rest(&mut self, side: usize, guard: &GuardRef) {
        let Some(name) = self.name_at(side, guard.key) else { return };
        let Some(key) = self.sides[side].whole(&name) else { return };
        let Some(lease) = key.leases.iter().find(|lease| lease.id == guard.lease && lease.is_settled(self.now)) else {
            return;
        };
        let Some(entry) = lease.guards.iter().find(|entry| entry.id == guard.guard) else { return };
        let used_up = entry.number >= self.config.handoffs && self.config.handoffs > 0 && lease.is_exclusive();
        if used_up && !key.queue.waiters.is_empty() && !self.config.queues && !lease.terms.reentrant {
            *self.rest(side, &name) = Some(self.now);
            self.seen.push("a process rests");
        }
    }

    fn believers(&self) -> Vec<Believer> {
        let session_of = |seat: usize| self.members[self.config.seats[seat].member].2;
        let handed = self.seats.iter().enumerate().filter_map(|(index, seat)| match &seat.at {
            At::Holding { owner, mode, cell, epoch, .. } if self.believes(*cell) => Some(Believer {
                key: self.key_of(index),
                owner: *owner,
                mode: *mode,
                session: session_of(index),
                epoch: *epoch,
            }),
            _ => None,
        });
        let mut all: Vec<_> = handed.collect();
        for state in &self.sides {
            let whole = state.keys.iter().filter_map(|(_, slot)| slot.whole());
            for (key, offer) in whole.flat_map(|key| key.queue.offers.iter().map(move |offer| (key, offer))) {
                if offer.until.is_none() {
                    continue;
                }
                let Some(lease) = key.leases.iter().find(|lease| lease.id == offer.guard.lease) else { continue };
                let Some(entry) = lease.guards.iter().find(|entry| entry.id == offer.guard.guard) else {
                    continue;
                };
                if self.believes(lease.cell.id) {
                    let epoch = lease.epoch().unwrap_or_default();
                    all.push(Believer {
                        key: key.name.clone(),
                        owner: entry.owner,
                        mode: lease.cell.mode(),
                        session: lease.terms.session,
                        epoch,
                    });
                }
            }
        }
        all.retain(|believer| !self.evicted.contains(&believer.owner));
        all
    }

    fn check_exclusion(&self) -> Checked {
        let all = self.believers();
        for (index, one) in all.iter().enumerate() {
            for other in &all[index + 1..] {
                let exclusive = one.mode == Mode::Exclusive || other.mode == Mode::Exclusive;
                let of_one_session = one.session.is_some() && one.session == other.session && one.epoch == other.epoch;
                if one.key == other.key && exclusive && !of_one_session {
                    return broken(Property::Exclusion, format!("{one:?} beside {other:?}"));
                }
            }
            if !self.store.holders.iter().any(|holder| holder.owner == one.owner && holder.epoch == one.epoch) {
                return broken(Property::Exclusion, format!("{one:?} is not the store's"));
            }
        }
        Ok(())
    }

    /// What a guard believes, the state knows.
    fn check_guards(&self) -> Checked {
        for (index, seat) in self.seats.iter().enumerate() {
            let At::Holding { guard, cell, .. } = &seat.at else { continue };
            let known = self.sides[self.side_of(index)].lease_of(*cell);
            let stands = known.is_some_and(|lease| lease.guards.iter().any(|entry| entry.id == guard.guard));
            if self.believes(*cell) && !stands {
                return broken(Property::Structure, "a guard that believes to be held is unknown to the state");
            }
        }
        for (index, seat) in self.seats.iter().enumerate() {
            let waits = |seat: &Seat| match &seat.at {
                At::Waiting { id, offer: None, .. } => Some(*id),
                _ => None,
            };
            if let Some(id) = waits(seat)
                && !self.sides.iter().any(|side| side.knows(&self.key_of(index), id))
            {
                return broken(Property::Liveness, "a caller waits of whom the state knows nothing");
            }
        }
        Ok(())
    }

    /// Each lease ends once, and forgets what is not needed any more.
    fn check_cells(&mut self) -> Checked {
        for cell in &self.cells {
            let held = self.sides[cell.side].lease_of(cell.id).is_some_and(|lease| lease.end.is_none());
            match (held, cell.end) {
                (true, Some(end)) => {
                    return broken(Property::OneEnd, format!("the state goes on with a lease that ended by {end:?}"));
                }
                (false, None) => return broken(Property::OneEnd, "a lease is gone without an end"),
                _ => {}
            }
        }
        for side in &self.sides {
            for lease in side.all_leases() {
                let limit = self.cells.iter().find(|cell| cell.id == lease.cell.id).map(|cell| cell.limit);
                if lease.end.is_none() && limit.is_some_and(|limit| limit != lease.limit()) {
                    return broken(Property::OneEnd, "the guards are not told of a lease's limit");
                }
            }
        }
        let (seats, sides, leaving) = (&self.seats, &self.sides, &self.leaving);
        let referred = |id: u32| {
            leaving.iter().any(|leaving| leaving.cell == id)
                || seats.iter().any(|seat| match &seat.at {
                    At::Holding { cell, .. } => *cell == id,
                    At::Waiting { offer: Some(offer), .. } => offer.cell.id == id,
                    _ => false,
                })
        };
        self.cells.retain(|cell| referred(cell.id) || sides[cell.side].lease_of(cell.id).is_some());
        let in_use = |owner: &OwnerId| {
            sides.iter().flat_map(|side| side.keys.iter()).any(|(_, key)| {
                key.leases()
                    .iter()
                    .any(|lease| lease.guards.iter().any(|entry| entry.owner == *owner) || lease.cell.owner() == *owner)
                    || key.whole().is_some_and(|key| {
                        key.store.claims.iter().any(|claim| claim.owner == *owner)
                            || key.store.take_overs.iter().any(|pending| pending.grant.owner == *owner)
                    })
            })
        };
        let in_use = |owner: &OwnerId| in_use(owner) || leaving.iter().any(|leaving| leaving.owner == *owner);
        for owners in [&mut self.evicted, &mut self.store.forced, &mut self.store.ran_out] {
            owners.retain(in_use);
        }
        Ok(())
    }
}

impl State<Handle, LeaseNote> {
    fn lease_of(&self, cell: u32) -> Option<Lease<LeaseNote>> {
        self.all_leases().find(|lease| lease.cell.id == cell)
    }

    fn all_leases(&self) -> impl Iterator<Item = Lease<LeaseNote>> {
        self.keys.iter().flat_map(|(_, key)| key.leases().into_owned())
    }

    /// A key of which something is known beside its lease.
    fn whole(&self, key: &LockKey) -> Option<&Key<Handle, LeaseNote>> {
        self.keys.get(key).and_then(KeyEntry::whole)
    }

    fn knows(&self, key: &LockKey, id: WaiterId) -> bool {
        self.whole(key).is_some_and(|Key { queue, store, .. }| {
            let offered = queue.offers.iter().map(|offer| &offer.waiter);
            let taking_over = store.take_overs.iter().filter_map(|pending| pending.waiter.as_ref());
            queue.waiters.iter().chain(&queue.asleep).chain(offered).chain(taking_over).any(|waiter| waiter.id == id)
        })
    }

    pub(super) fn is_waiting(&self, key: &LockKey, id: WaiterId) -> bool {
        self.whole(key).is_some_and(|key| key.queue.waiters.iter().any(|waiter| waiter.id == id))
    }

    /// Whether this claim is of a caller that is gone.
    pub(super) fn is_orphaned(&self, key: &LockKey, request: RequestId) -> bool {
        let is_it = |claim: &PendingClaim<Handle>| claim.request() == Some(request) && claim.for_waiter.is_none();
        self.whole(key).is_some_and(|key| key.store.claims.iter().any(is_it))
    }

    /// Whether the answer to a release is waited for, or the first one, if no attempt has failed before.
    pub(super) fn waits_for_release(&self, key: &LockKey, request: RequestId, first: bool) -> bool {
        let waits = |release: &PendingRelease<Handle>| {
            release.late_pause.is_none() && release.request == Some(request) && !(first && release.has_failed)
        };
        self.whole(key).is_some_and(|key| key.store.releases.iter().any(waits))
    }

    /// Whether what this owner may have got late is released once more.
    pub(super) fn may_be_late(&self, key: &LockKey, owner: OwnerId) -> bool {
        let is_it = |release: &PendingRelease<Handle>| release.late_pause.is_some() && release.grant.owner == owner;
        self.whole(key).is_some_and(|key| key.store.releases.iter().any(is_it))
    }
}
