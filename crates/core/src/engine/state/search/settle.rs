//! What becomes of a situation when nothing goes wrong any more: everybody who waits is served, and nothing is left.

use std::time::Duration;

use super::super::event::Request;
use super::store::Holder;
use super::world::{Asks, At, Checked, Property, TTL, UNIT, World, broken, units};
use crate::clock::Moment;

/// Nothing takes longer from when nothing goes wrong: leases run out, and the longest pause is a second.
const PATIENCE: Duration = Duration::from_secs(8);
/// Echoes of releases go on for as long as a claim may be late.
const ECHOES: Duration = Duration::from_secs(70);

impl World {
    /// Everybody is served, also those beside one who is never polled; then all go, and nothing is left.
    pub(super) fn settles(&self) -> Checked {
        self.clone().serves(None)?;
        let waits = |index: &usize| !matches!(self.seats[*index].at, At::Holding { .. }) && self.has_stalled(*index);
        for index in (0..self.seats.len()).filter(waits) {
            self.clone().serves(Some(index)).map_err(|violation| super::world::Violation {
                what: format!("with caller {index} never polled: {}", violation.what),
                ..violation
            })?;
        }
        for member in (0..self.members.len()).filter(|member| !self.closed[*member]) {
            self.clone().closes(member)?;
        }
        Ok(())
    }

    fn has_stalled(&self, index: usize) -> bool {
        let handle = self.seats[index].handle;
        matches!(self.seats[index].at, At::Waiting { .. })
            || self.flights.iter().any(|flight| flight.by == Some(handle))
    }

    fn serves(mut self, unpolled: Option<usize>) -> Checked {
        let start = self.now;
        self.land_late();
        loop {
            if self.proceed(unpolled)? {
                continue;
            }
            if !self.somebody_waits(unpolled) {
                break;
            }
            if !self.wait_for_next(start, PATIENCE)? {
                return broken(Property::Liveness, "somebody waits for ever");
            }
        }
        self.all_go()?;
        self.leaves_nothing()
    }

    /// What was not carried out, or answered, when its sender gave up is carried out now.
    fn land_late(&mut self) {
        while let Some(index) = self.flights.iter().position(|flight| flight.unheard) {
            self.execute(index);
        }
    }

    fn somebody_waits(&self, unpolled: Option<usize>) -> bool {
        self.seats.iter().enumerate().any(|(index, seat)| Some(index) != unpolled && !matches!(seat.at, At::Away))
    }

    fn note(&self, what: impl FnOnce(&Self) -> String) {
        if super::explore::TELLS.get() {
            println!("    {:?} {}", self.now, what(self));
        }
    }

    /// Does one thing that is due, if there is any.
    fn proceed(&mut self, unpolled: Option<usize>) -> Checked<bool> {
        self.busy += 1;
        if self.busy > 1000 {
            return broken(Property::Liveness, "there is no end of what is done without time passing");
        }
        let done = self.one_thing(unpolled)?;
        if done {
            self.check()?;
        }
        Ok(done)
    }

    fn one_thing(&mut self, unpolled: Option<usize>) -> Checked<bool> {
        let stalled = unpolled.map(|index| self.seats[index].handle);
        if let Some(index) = self.flights.iter().position(|flight| flight.by.is_none() || flight.by != stalled) {
            self.note(|world| world.about(super::moves::Move::RoundTrip(u8::try_from(index).unwrap())));
            self.round_trip(index)?;
            return Ok(true);
        }
        if !self.notifications.is_empty() {
            self.deliver(0)?;
            return Ok(true);
        }
        for index in (0..self.seats.len()).filter(|index| Some(*index) != unpolled) {
            self.note(|world| format!("seat {index} {:?}", world.seats[index].at));
            match &self.seats[index].at {
                At::Holding { .. } => self.release_guard(index, true)?,
                At::Waiting { offer: Some(_), .. } | At::Waiting { called: true, .. } => self.collect(index)?,
                At::Waiting { .. } if self.must_say_that_time_is_up(index) => self.times_up(index)?,
                _ => continue,
            }
            return Ok(true);
        }
        for side in 0..self.sides.len() {
            if self.sides[side].next() <= self.now {
                self.note(|_| format!("timer {side}"));
                self.timer(side)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn must_say_that_time_is_up(&self, index: usize) -> bool {
        matches!(self.seats[index].at, At::Waiting { limit, times_up: false, .. } if self.now >= limit)
    }

    /// Lets time pass until something is due. False if nothing will be, or not in time.
    fn wait_for_next(&mut self, start: Moment, patience: Duration) -> Checked<bool> {
        let limits = self.seats.iter().filter_map(|seat| match &seat.at {
            At::Waiting { limit, .. } if *limit > self.now => Some(*limit),
            _ => None,
        });
        let store =
            self.store.holders.iter().map(|holder| holder.ends).chain(self.store.queue.iter().map(|place| place.until));
        let next =
            self.sides.iter().map(super::super::State::next).chain(limits).chain(store).min().unwrap_or(Moment::NEVER);
        if next == Moment::NEVER || next.since(start) > patience {
            return Ok(false);
        }
        if next <= self.now {
            return broken(Property::Liveness, "a timer fires for ever");
        }
        self.busy = 0;
        self.pass(next.since(self.now));
        Ok(true)
    }

    /// Everybody leaves.
    fn all_go(&mut self) -> Checked {
        for index in 0..self.seats.len() {
            match self.seats[index].at {
                At::Holding { .. } => self.release_guard(index, false)?,
                At::Waiting { .. } => self.leave(index)?,
                At::Away => {}
            }
        }
        self.flights.iter_mut().for_each(|flight| flight.by = None);
        while self.proceed(None)? {}
        Ok(())
    }

    fn leaves_nothing(mut self) -> Checked {
        let nothing_in_store = |world: &Self| world.store.holders.is_empty() && world.store.queue.is_empty();
        // What was detached is the store's until somebody attaches it, or its lease is over.
        let nothing_left = |world: &Self| {
            let is_detached = |holder: &Holder| world.detached.contains(&holder.owner);
            world.store.holders.iter().all(is_detached) && world.store.queue.is_empty()
        };
        if !self.faulted && !self.refused && !nothing_left(&self) {
            return broken(Property::Left, "the store keeps what everybody has left");
        }
        let start = self.now;
        while !self.faulted && !nothing_left(&self) {
            if !self.proceed(None)? && !self.wait_for_next(start, UNIT)? {
                return broken(Property::Left, "the store keeps what was refused once");
            }
        }
        while !self.is_still() {
            if !self.proceed(None)? && !self.wait_for_next(start, ECHOES)? {
                return broken(Property::Left, "something is kept for ever that nobody wants");
            }
            if self.now.since(start) > units(TTL) + UNIT && !nothing_in_store(&self) {
                return broken(Property::Left, "the store keeps for longer than a lease what everybody has left");
            }
        }
        for (side, member, _) in &self.members {
            if !self.sides[*side].is_idle(*member) {
                return broken(Property::Left, "an engine is not idle although nothing is under way");
            }
        }
        Ok(())
    }

    /// A close ends as soon as what is under way is answered.
    fn closes(mut self, member: usize) -> Checked {
        let start = self.now;
        self.close(member)?;
        let (side, id, _) = self.members[member];
        while !self.sides[side].is_idle(id) {
            let of_it = |flight: &super::world::Flight| {
                let counts = matches!(
                    &flight.asks,
                    Asks::Store(
                        Request::Claim(..) | Request::Release(..) | Request::TakeOver(..) | Request::Downgrade(..)
                    )
                );
                flight.member == member && counts && !flight.unheard
            };
            if let Some(index) = self.flights.iter().position(of_it) {
                self.round_trip(index)?;
                self.check()?;
            } else if self.sides.iter().any(|side| side.next() <= self.now) {
                (0..self.sides.len()).try_for_each(|side| self.timer(side))?;
            } else if !(self.faulted || self.refused) || !self.wait_for_next(start, units(TTL) + UNIT)? {
                return broken(Property::Close, "a close does not end");
            }
        }
        Ok(())
    }
}
