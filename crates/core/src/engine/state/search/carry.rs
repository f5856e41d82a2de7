//! What the state asks for is carried out, and what the store says comes back.

use super::super::check::{LeaseNote, TestRandom};
use super::super::event::{Action, Actions, Batch, End, Event, Request};
use super::super::{Applying, State};
use super::key_names::{name_of, number_of_key};
use super::world::{Answer, Asks, At, Checked, Flight, Handle, Property, Seat, Side, World, broken};
use crate::{Attempt, Claim, ErrorKind, LeaseStatus, LossReason, Mode, Notification};

impl World {
    /// Gives an event to the engines of a process.
    pub(super) fn feed(&mut self, side: Side, event: Event) -> Checked {
        self.ask(side, |state, at| state.apply(at, event))
    }

    /// Has a guard ask something of the state.
    pub(super) fn ask<T>(
        &mut self,
        side: Side,
        ask: impl FnOnce(&mut State<Handle, LeaseNote>, Applying<'_, Handle, LeaseNote>) -> T,
    ) -> Checked<T> {
        let (answer, out) = self.applied(side, ask);
        self.carry_out(side, out)?;
        Ok(answer)
    }

    /// What the state answers, and what it asks for.
    pub(super) fn applied<T>(
        &mut self,
        side: Side,
        ask: impl FnOnce(&mut State<Handle, LeaseNote>, Applying<'_, Handle, LeaseNote>) -> T,
    ) -> (T, Actions<Handle, LeaseNote>) {
        let mut out = Actions::new();
        let at = Applying { now: self.now, random: &mut TestRandom(&mut self.owners), out: &mut out };
        (ask(&mut self.sides[side], at), out)
    }

    pub(super) fn carry_out(&mut self, side: Side, out: Actions<Handle, LeaseNote>) -> Checked {
        for action in out {
            match action {
                Action::Send { member, request, by, alone } => {
                    let member = self.members.iter().position(|(of, id, _)| (*of, *id) == (side, member)).unwrap();
                    self.may_send(side, member, &request, by)?;
                    let tells = by.filter(|by| self.leaving.iter().any(|leaving| leaving.handle == *by));
                    self.flights.push(Flight {
                        side,
                        member,
                        asks: Asks::Store(request),
                        by: by.filter(|_| alone),
                        tells,
                        answer: None,
                        unheard: false,
                    });
                }
                Action::Detached(by) => self.detached(side, by),
                Action::Wake(handle, outcome) => self.outcome_of(side, handle, outcome)?,
                Action::Limit(cell, limit) => {
                    let cell = self.cell(side, &cell);
                    if cell.end.is_some() {
                        return broken(Property::OneEnd, "a lease is prolonged after its end");
                    }
                    let shorter = limit < cell.limit;
                    cell.limit = limit;
                    if shorter && self.config.seats.iter().all(|seat| seat.cap.is_none()) {
                        return broken(Property::OneEnd, "a lease is shortened");
                    }
                }
                Action::End { cell, end, .. } => self.ended(side, &cell, end)?,
                Action::HandedOff => self.seen.push("a lease passes from guard to guard"),
                Action::Unsubscribe(request) => {
                    self.subscribed.retain(|known| *known != (side, request));
                    self.notifications.retain(|(of, to, _)| (*of, *to) != (side, request));
                }
                Action::AttemptFailed(..) | Action::ReleaseFailed(..) | Action::Keep(_) | Action::Idle(_) => {}
            }
        }
        Ok(())
    }

    fn may_send(&mut self, side: Side, member: usize, request: &Request, by: Option<Handle>) -> Checked {
        if let Request::Claim(_, claim) = request {
            let now = self.now;
            let rests = *self.rest(side, &claim.key) == Some(now);
            if rests && claim.waits && !self.is_at_its_limit(by) {
                return broken(Property::Turns, "a process that used up its bound is back before others");
            }
            if self.stands_on_lost(member, &claim.key) {
                return broken(Property::Birth, "a session claims under a guard that is lost");
            }
            match self.gives_back(side, member, claim) {
                Some(true) => {
                    return broken(Property::Tokens, "a session claims what it is giving back, and may join that");
                }
                Some(false) => return broken(Property::Turns, "a claim overtakes its own process's release"),
                None => {}
            }
        }
        if let Request::Release(_, grant) = request {
            // One before it is overdue, and told its caller that the outcome is unknown.
            let before = |flight: &&mut Flight| {
                flight.side == side
                    && matches!(&flight.asks, Asks::Store(Request::Release(_, of)) if of.owner == grant.owner)
            };
            self.flights.iter_mut().filter(before).for_each(|flight| flight.tells = None);
        }
        let Request::Renew(Batch { leases, renewals, .. }) = request else { return Ok(()) };
        let held: Vec<_> =
            renewals.iter().flat_map(|renewal| self.sides[side].leases(&renewal.grant.key, None)).collect();
        if leases.iter().any(|lease| !held.contains(lease)) {
            return broken(Property::OneEnd, "a renewal is sent for a lease that ended");
        }
        self.seen.push("a renewal is sent");
        Ok(())
    }

    /// Whether a process waits for the answer to a release of what it claims; and whether that is a level of the same session.
    fn gives_back(&self, side: Side, member: usize, claim: &Claim) -> Option<bool> {
        let is_session = self.members[member].2.is_some();
        self.flights.iter().filter(|flight| flight.side == side).find_map(|flight| {
            let Asks::Store(Request::Release(request, grant)) = &flight.asks else { return None };
            let of_session = is_session && flight.member == member;
            let in_the_way = grant.mode == Mode::Exclusive || claim.mode == Mode::Exclusive;
            let waits = self.sides[side].waits_for_release(&claim.key, *request, !of_session);
            (grant.key == claim.key && in_the_way && waits).then_some(of_session)
        })
    }

    /// Whether this caller waits for no other than this answer.
    fn is_at_its_limit(&self, by: Option<Handle>) -> bool {
        let its = |seat: &&Seat| Some(seat.handle) == by;
        let seat = self.seats.iter().find(its);
        seat.is_some_and(|seat| matches!(seat.at, At::Waiting { limit, .. } if limit <= self.now))
    }

    fn ended(&mut self, side: Side, cell: &LeaseNote, end: End) -> Checked {
        let guarded = self.seats.iter().any(|seat| matches!(seat.at, At::Holding { cell: of, .. } if of == cell.id));
        self.seen.push(match end {
            End::Lost(LossReason::Expired) if guarded => "a lease runs out under a guard",
            End::Lost(LossReason::Unreachable) if guarded => "a lease runs out unconfirmed",
            End::Lost(LossReason::MaxHold) if guarded => "a cap ends a lease",
            End::Lost(LossReason::ForceReleased) => "a guard hears of a release by force",
            End::Lost(LossReason::Stolen) => "a guard hears that it is not the holder",
            End::Lost(LossReason::Shutdown) => "a guard hears of the shutdown",
            End::Detached => "a lease is left to the store",
            _ => "a lease ends",
        });
        if matches!(end, End::Lost(reason) if reason != LossReason::MaxHold) {
            let of_it = self.seats.iter().zip(self.config.seats).find_map(|(seat, of_seat)| match seat.at {
                At::Holding { cell: of, epoch, .. } if of == cell.id => Some((of_seat.member, epoch)),
                _ => None,
            });
            self.lost.extend(of_it);
        }
        let cell = self.cell(side, cell);
        match cell.end.replace(end) {
            Some(before) => broken(Property::OneEnd, format!("a lease ends by {end:?} after {before:?}")),
            None => Ok(()),
        }
    }

    /// From now on a task of the driver's own looks after what this caller had under way.
    pub(super) fn detached(&mut self, side: Side, by: Handle) {
        for flight in self.flights.iter_mut().filter(|flight| flight.side == side && flight.by == Some(by)) {
            flight.by = None;
        }
    }

    /// The store carries out a request.
    pub(super) fn execute(&mut self, index: usize) {
        let Flight { side, member, asks, unheard, .. } = self.flights[index].clone();
        let session = self.members[member].2;
        let answer = match asks {
            Asks::Store(Request::Claim(_, claim)) => {
                let queue = self.queue(side, number_of_key(&claim.key));
                let attempt = self.store.claim(self.now, &claim, session, queue);
                self.seen.push(match attempt {
                    Attempt::Granted { .. } if unheard => "a claim is carried out late",
                    Attempt::Granted { .. } => "the store grants",
                    Attempt::Busy { .. } | Attempt::HeldBy { .. } => "the store is busy",
                    Attempt::Queued { .. } => "the store notes a waiter",
                });
                Answer::Claim(Ok(attempt))
            }
            Asks::Store(Request::Release(_, grant)) => {
                let held = self.store.release(&grant);
                if held == LeaseStatus::Held {
                    if self.sides[side].may_be_late(&grant.key, grant.owner) {
                        self.seen.push("an echo frees what a late claim took");
                    }
                    self.tell(number_of_key(&grant.key), Notification::Freed);
                }
                Answer::Release(Ok(held))
            }
            Asks::Store(Request::TakeOver(_, grant, owner, ttl)) => {
                let held = self.store.take_over(self.now, &grant, owner, ttl);
                self.seen.push(if held == LeaseStatus::Held {
                    "a lock is taken over"
                } else {
                    "a lock is not attached twice"
                });
                let granted = Attempt::Granted { epoch: grant.epoch };
                Answer::TakeOver(Ok(if held == LeaseStatus::Held { granted } else { Attempt::Busy { retry_in: None } }))
            }
            Asks::Store(Request::Downgrade(_, writer, claim)) => {
                let attempt = self.store.downgrade(self.now, &writer, &claim);
                if matches!(attempt, Attempt::Granted { .. }) {
                    self.seen.push(if unheard { "a downgrade is carried out late" } else { "a writer is downgraded" });
                    self.tell(number_of_key(&claim.key), Notification::Freed);
                }
                Answer::TakeOver(Ok(attempt))
            }
            Asks::Store(Request::Renew(Batch { renewals, .. })) => {
                Answer::Renew(renewals.iter().map(|renewal| Ok(self.store.renew(self.now, renewal, session))).collect())
            }
            Asks::Store(Request::Subscribe(request, _)) => {
                self.subscribed.push((side, request));
                Answer::Subscribe(true)
            }
            Asks::Force(key, _) => {
                self.force(key);
                Answer::Force
            }
        };
        self.store_settles();
        if unheard {
            self.flights.remove(index);
        } else {
            self.flights[index].answer = Some(answer);
        }
    }

    /// A request is carried out, if it was not before, and its answer arrives.
    pub(super) fn round_trip(&mut self, index: usize) -> Checked {
        if self.flights[index].answer.is_none() {
            self.execute(index);
        }
        self.answer(index)
    }

    /// Its answer arrives.
    pub(super) fn answer(&mut self, index: usize) -> Checked {
        let Flight { side, asks, tells, answer, .. } = self.flights.remove(index);
        let Some(answer) = answer else { return Ok(()) };
        let told = answer.of_release();
        self.take_in(side, asks, answer)?;
        match tells {
            Some(by) => self.hears(by, told),
            None => Ok(()),
        }
    }

    fn take_in(&mut self, side: Side, asks: Asks, answer: Answer) -> Checked {
        match (asks, answer) {
            (Asks::Store(Request::Claim(request, Claim { key, .. })), Answer::Claim(answer)) => {
                let orphaned = self.sides[side].is_orphaned(&key, request);
                let granted = matches!(answer, Ok(Attempt::Granted { .. }));
                let before = self.sides[side].leases(&key, None).len();
                self.feed(side, Event::Answered { request, answer })?;
                if granted && self.sides[side].leases(&key, None).len() > before {
                    self.seen.push(if orphaned { "an heir takes what another asked for" } else { "a lease begins" });
                } else if granted && orphaned {
                    self.seen.push("a grant that nobody wants goes back");
                }
                Ok(())
            }
            (Asks::Store(Request::Release(request, _)), Answer::Release(answer)) => {
                self.feed(side, Event::Released { request, answer })
            }
            (
                Asks::Store(Request::TakeOver(request, ..) | Request::Downgrade(request, ..)),
                Answer::TakeOver(answer),
            ) => self.feed(side, Event::TakenOver { request, answer }),
            (Asks::Store(Request::Renew(batch)), Answer::Renew(answers)) => {
                self.feed(side, Event::Renewed(batch, answers))
            }
            (Asks::Store(Request::Subscribe(request, _)), Answer::Subscribe(begun)) => {
                self.feed(side, Event::Subscribed { request, begun })?;
                if !self.sides[side].is_subscribed(request) {
                    self.subscribed.retain(|known| *known != (side, request));
                    self.notifications.retain(|(of, to, _)| (*of, *to) != (side, request));
                }
                Ok(())
            }
            (Asks::Force(key, leases), Answer::Force) => {
                self.feed(side, Event::ForceReleased { key: name_of(key), leases })
            }
            _ => Ok(()),
        }
    }

    /// Its answer is lost: it may not even have been carried out yet.
    pub(super) fn lose(&mut self, index: usize) -> Checked {
        self.faulted = true;
        let executed = self.flights[index].answer.is_some();
        let flight = self.flights[index].clone();
        let failed = Answer::failed(&flight.asks, ErrorKind::Indeterminate);
        self.flights[index].answer = Some(failed);
        let may_come_yet = !executed && !matches!(flight.asks, Asks::Store(Request::Subscribe(..)) | Asks::Force(..));
        if matches!(flight.asks, Asks::Force(..)) {
            self.flights.remove(index);
        } else {
            self.answer(index)?;
        }
        if may_come_yet {
            self.flights.push(Flight { unheard: true, by: None, tells: None, answer: None, ..flight });
        }
        Ok(())
    }

    /// It is refused, and not carried out.
    pub(super) fn refuse(&mut self, index: usize, kind: ErrorKind) -> Checked {
        self.refused = true;
        // A release that is refused when the lease could have ended is not made again, and the lease frees the key.
        let releases = matches!(self.flights[index].asks, Asks::Store(Request::Release(..)));
        self.faulted |= releases || kind != ErrorKind::Unavailable;
        let failed = Answer::failed(&self.flights[index].asks, kind);
        if matches!(failed, Answer::Force) {
            self.flights.remove(index);
            return Ok(());
        }
        self.flights[index].answer = Some(failed);
        self.answer(index)
    }

    /// What the passing of time, or a release, does in the store.
    pub(super) fn store_settles(&mut self) {
        let granted = self.store.settle(self.now);
        for (key, notification) in granted {
            self.tell(key, notification);
        }
    }

    /// Tells everybody who listens, once.
    fn tell(&mut self, key: u8, notification: Notification) {
        if !self.config.notifies || (self.config.queues && notification == Notification::Freed) {
            return;
        }
        for (side, request) in self.subscribed.clone() {
            if self.listens_to(side, request) == key && !self.notifications.contains(&(side, request, notification)) {
                self.notifications.push((side, request, notification));
            }
        }
    }

    pub(super) fn force(&mut self, key: u8) {
        let evicted = self.store.force(key);
        self.evicted.extend(evicted);
        self.tell(key, Notification::Freed);
        self.store_settles();
    }

    pub(super) fn forget(&mut self, restarts: bool) {
        let evicted = self.store.forget(restarts);
        self.evicted.extend(evicted);
        if restarts {
            self.notifications.clear();
            for (side, request) in self.subscribed.drain(..) {
                self.notifications.push((side, request, Notification::Ended));
            }
        }
        self.store_settles();
    }
}

impl Answer {
    /// What it says to who released a guard.
    fn of_release(&self) -> Option<LeaseStatus> {
        match self {
            Self::Release(Ok(held)) => Some(*held),
            Self::Renew(answers) => answers.first().and_then(|held| held.as_ref().ok()).copied(),
            _ => None,
        }
    }

    pub(super) fn failed(of: &Asks, kind: ErrorKind) -> Self {
        use crate::Error;

        let error = || Error::new(kind, "ask");
        match of {
            Asks::Store(Request::Claim(..)) => Self::Claim(Err(error())),
            Asks::Store(Request::Release(..)) => Self::Release(Err(error())),
            Asks::Store(Request::TakeOver(..) | Request::Downgrade(..)) => Self::TakeOver(Err(error())),
            Asks::Store(Request::Renew(Batch { leases, .. })) => {
                Self::Renew(leases.iter().map(|_| Err(error())).collect())
            }
            Asks::Store(Request::Subscribe(..)) => Self::Subscribe(false),
            Asks::Force(..) => Self::Force,
        }
    }
}
