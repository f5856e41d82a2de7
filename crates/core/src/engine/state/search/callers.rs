//! What callers do, and what they are told.

use std::cmp::Ordering;

use super::super::Collected;
use super::super::check::LeaseNote;
use super::super::event::{Attach, Event, GuardRelease, Join, LeaseCell, Outcome, RequestId, WaiterId};
use super::super::keys::KeyEntry;
use super::key_names::name_of;
use super::world::{At, Checked, Handle, Leaving, Property, Side, Token, Wants, World, broken};
use crate::clock::Moment;
use crate::{ErrorKind, GrantRef, LeaseStatus, LossReason, Mode, Notification, OwnerId, ReleaseOutcome};

impl World {
    pub(super) fn join(&mut self, index: usize, limit: Moment) -> Checked {
        let (floor, wants) = (self.newest_token(self.config.seats[index].key), Wants::Key);
        let (side, join) = self.asks(index, self.config.seats[index].mode, limit);
        let handle = join.handle;
        let ((id, _), out) = self.applied(side, |state, at| state.join(at, join));
        let times_up = limit <= self.now;
        let at = At::Waiting { id, limit, times_up, offer: None, called: false, floor, wants };
        (self.seats[index].handle, self.seats[index].at) = (handle, at);
        self.carry_out(side, out)
    }

    /// What a caller asks of its process.
    fn asks(&mut self, index: usize, mode: Mode, limit: Moment) -> (Side, Join<Handle>) {
        let (side, member, _) = self.members[self.config.seats[index].member];
        let (key, options) = (self.key_of(index), self.options(index));
        (side, Join { member, key, mode, options, limit, handle: self.next_handle() })
    }

    /// A caller that takes a lock over waits for the answer, and has no limit.
    fn takes_over(&mut self, index: usize, handle: Handle, id: WaiterId, floor: Token, wants: Wants) {
        let limit = Moment::NEVER;
        self.seats[index].handle = handle;
        self.seats[index].at = At::Waiting { id, limit, times_up: true, offer: None, called: false, floor, wants };
    }

    pub(super) fn collect(&mut self, index: usize) -> Checked {
        let side = self.side_of(index);
        let At::Waiting { id, limit, offer, called: was_called, floor, wants, .. } = self.seats[index].at.clone()
        else {
            return Ok(());
        };
        if let At::Waiting { called, .. } = &mut self.seats[index].at {
            *called = false;
        }
        let Some(offer) = offer else {
            return if was_called { self.polled(index) } else { Ok(()) };
        };
        match self.sides[side].collect(id, &offer.guard) {
            Collected::Yes => {
                let (member, epoch) = (self.config.seats[index].member, offer.cell.epoch().unwrap_or_default());
                match wants {
                    Wants::Detached(before) => self.attached(before)?,
                    Wants::Key | Wants::Downgrade => {
                        self.handed_out(member, (epoch, offer.number), &offer, floor)?;
                    }
                }
                if wants == Wants::Downgrade {
                    self.seen.push("a writer goes on as a reader");
                }
                let (owner, mode) = (offer.owner, offer.cell.mode());
                self.seats[index].at = At::Holding { guard: offer.guard, owner, mode, cell: offer.cell.id, epoch };
                self.seen.push("a guard is handed out");
                if self.sides[side].keys.get(&self.key_of(index)).is_some_and(|slot| slot.whole().is_none()) {
                    self.seen.push("a key is only held");
                }
                Ok(())
            }
            Collected::NotYet => {
                self.seen.push("an offer was withdrawn");
                if let At::Waiting { offer, .. } = &mut self.seats[index].at {
                    *offer = None;
                }
                self.polled(index)
            }
            Collected::TooLate if wants != Wants::Key => {
                self.seen.push("what was taken over was taken back");
                self.seats[index].at = At::Away;
                Ok(())
            }
            Collected::TooLate => {
                self.seen.push("an offer was taken back");
                self.join(index, limit)
            }
        }
    }

    /// A caller that was called answers.
    fn polled(&mut self, index: usize) -> Checked {
        let (side, key) = (self.side_of(index), self.key_of(index));
        let At::Waiting { id, .. } = self.seats[index].at else { return Ok(()) };
        let asleep = |world: &Self| {
            world.sides[side].keys.get(&key).and_then(KeyEntry::whole).map_or(0, |whole| whole.queue.asleep.len())
        };
        let before = asleep(self);
        self.feed(side, Event::Polled(key.clone(), id))?;
        match asleep(self).cmp(&before) {
            Ordering::Less => self.seen.push("who was passed is back in its place"),
            Ordering::Greater => self.seen.push("who is polled passes who is not"),
            Ordering::Equal => {}
        }
        Ok(())
    }

    pub(super) fn times_up(&mut self, index: usize) -> Checked {
        let side = self.side_of(index);
        let At::Waiting { id, times_up, .. } = &mut self.seats[index].at else { return Ok(()) };
        *times_up = true;
        let id = *id;
        self.feed(side, Event::TimesUp(self.key_of(index), id))
    }

    pub(super) fn leave(&mut self, index: usize) -> Checked {
        let side = self.side_of(index);
        let At::Waiting { id, .. } = self.seats[index].at else { return Ok(()) };
        let handle = self.seats[index].handle;
        self.detached(side, handle);
        self.feed(side, Event::Leave(self.key_of(index), id))?;
        self.seats[index].at = At::Away;
        Ok(())
    }

    pub(super) fn release_guard(&mut self, index: usize, waits: bool) -> Checked {
        let side = self.side_of(index);
        let At::Holding { guard, owner, cell, .. } = self.seats[index].at.clone() else { return Ok(()) };
        let handle = self.next_handle();
        self.seats[index].handle = handle;
        self.seats[index].at = At::Away;
        self.begins_rest(side, &guard);
        let (ended, out) = self.applied(side, |state, at| state.release_guard(at, &guard, waits.then_some(handle)));
        if waits && matches!(ended, GuardRelease::Sent | GuardRelease::Asked) {
            self.leaving.push(Leaving { handle, owner, cell, ended });
        }
        self.carry_out(side, out)
    }

    /// Who released a guard hears the store's answer. Only what the store took away, or let run out, was lost.
    pub(super) fn hears(&mut self, by: Handle, told: Option<LeaseStatus>) -> Checked {
        let Some(index) = self.leaving.iter().position(|leaving| leaving.handle == by) else { return Ok(()) };
        let Leaving { owner, cell, ended, .. } = self.leaving.swap_remove(index);
        let end = self.cells.iter().find(|known| known.id == cell).and_then(|known| known.end);
        let taken = self.evicted.contains(&owner) || self.store.ran_out.contains(&owner);
        match told.map(|told| (told, ended.outcome(told, end))) {
            Some((_, ReleaseOutcome::AlreadyLost(LossReason::Stolen))) if !taken => {
                return broken(Property::OneEnd, "who released hears of a loss that was none");
            }
            // A reader that only asked cannot tell whether the others' release came first.
            Some((LeaseStatus::NotHeld, ReleaseOutcome::Released)) if taken && ended == GuardRelease::Sent => {
                return broken(Property::OneEnd, "who released does not hear of a loss");
            }
            Some((_, ReleaseOutcome::AlreadyLost(_))) => self.seen.push("a release hears of a loss"),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn detach(&mut self, index: usize) -> Checked {
        let side = self.side_of(index);
        let At::Holding { guard, .. } = self.seats[index].at.clone() else { return Ok(()) };
        if !self.ask(side, |state, at| state.detach(at, &guard))? {
            self.seen.push("a guard that is lost is not detached");
            return Ok(());
        }
        let At::Holding { owner, epoch, .. } = self.seats[index].at else { return Ok(()) };
        let grant = GrantRef { key: self.key_of(index), owner, mode: Mode::Exclusive, epoch: Some(epoch) };
        self.detached.push(owner);
        self.detached_lock = Some((grant, self.newest_number_of(epoch)));
        self.seats[index].at = At::Away;
        Ok(())
    }

    /// Asks for a lock that was detached. What was sent twice may be tried twice.
    pub(super) fn attach(&mut self, index: usize) -> Checked {
        self.seats[index].joins -= 1;
        let Some((grant, number)) = self.detached_lock.clone() else { return Ok(()) };
        let (side, join) = self.asks(index, self.config.seats[index].mode, self.now);
        let (handle, wants) = (join.handle, Wants::Detached(grant.owner));
        let (id, out) = self.applied(side, |state, at| state.attach(at, Attach { join, grant, number }));
        self.takes_over(index, handle, id, Token::default(), wants);
        self.carry_out(side, out)
    }

    /// A writer asks to go on as a reader.
    pub(super) fn downgrade(&mut self, index: usize) -> Checked {
        let At::Holding { guard, .. } = self.seats[index].at.clone() else { return Ok(()) };
        let floor = self.newest_token(self.config.seats[index].key);
        let (side, join) = self.asks(index, Mode::Shared, self.now);
        let handle = join.handle;
        let (asked, out) = self.applied(side, |state, at| state.downgrade(at, &guard, join));
        // Else it is lost, and not downgraded.
        if let Some(id) = asked {
            self.takes_over(index, handle, id, floor, Wants::Downgrade);
        }
        self.carry_out(side, out)
    }

    /// A detached lock is a guard's once.
    fn attached(&mut self, before: OwnerId) -> Checked {
        self.seen.push("a lock is attached");
        if self.attached.contains(&before) {
            return broken(Property::Tokens, "a lock is attached twice");
        }
        self.attached.push(before);
        Ok(())
    }

    fn newest_number_of(&self, epoch: u64) -> u16 {
        self.tokens.iter().filter(|token| token.0 == epoch).map(|token| token.1).max().unwrap_or_default()
    }

    pub(super) fn close(&mut self, member: usize) -> Checked {
        self.closed[member] = true;
        let (side, member, _) = self.members[member];
        self.feed(side, Event::Close(member))
    }

    pub(super) fn deliver(&mut self, index: usize) -> Checked {
        let (side, request, notification) = self.notifications.remove(index);
        if notification == Notification::Ended {
            self.subscribed.retain(|known| *known != (side, request));
        }
        let key = name_of(self.listens_to(side, request));
        let before = self.sides[side].leases(&key, None).len();
        self.feed(side, Event::Notified { request, notification })?;
        if matches!(notification, Notification::Granted { .. }) && self.sides[side].leases(&key, None).len() > before {
            self.seen.push("a message grants");
        }
        Ok(())
    }

    /// A message from before tells the first in the store's line that it was granted what another has now.
    pub(super) fn forge(&mut self, side: Side) -> Checked {
        let Some(place) = self.store.queue.first() else { return Ok(()) };
        let notification = Notification::Granted { owner: place.owner, epoch: Some(self.store.newest) };
        let key = place.key;
        let listens = |(of, request): &&(Side, RequestId)| *of == side && self.listens_to(side, *request) == key;
        let Some(&(_, request)) = self.subscribed.iter().find(listens) else { return Ok(()) };
        self.feed(side, Event::Notified { request, notification })
    }

    /// What a caller is told.
    pub(super) fn outcome_of(&mut self, side: Side, handle: Handle, outcome: Outcome<LeaseNote>) -> Checked {
        let waits = |seat: &super::world::Seat| seat.handle == handle && matches!(seat.at, At::Waiting { .. });
        let Some(index) = self.seats.iter().position(waits) else {
            return broken(
                Property::Liveness,
                format!("somebody who is gone, or was answered before, is told {outcome:?}"),
            );
        };
        match outcome {
            Outcome::Granted(granted) => {
                if self.closed[self.config.seats[index].member] {
                    return broken(Property::Close, "a guard is born after the engine was closed");
                }
                self.is_well_born(side, index, &granted)?;
                if let At::Waiting { offer, .. } = &mut self.seats[index].at {
                    *offer = Some(granted);
                }
            }
            Outcome::Called => {
                if let At::Waiting { called, .. } = &mut self.seats[index].at {
                    *called = true;
                }
            }
            Outcome::Busy(_) => {
                self.seen.push("a caller hears that the key is busy");
                self.seats[index].at = At::Away;
            }
            Outcome::Failed(error) => {
                self.seen.push(match error.kind() {
                    ErrorKind::Lost(_) => "a caller hears that a guard is lost",
                    ErrorKind::Closed => "a caller hears that the engine is closed",
                    _ => "a caller hears of a failure",
                });
                self.seats[index].at = At::Away;
            }
        }
        Ok(())
    }
}
