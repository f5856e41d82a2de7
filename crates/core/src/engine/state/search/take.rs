//! A step is taken.

use super::super::event::Event;
use super::key_names::name_of;
use super::moves::Move;
use super::world::{Asks, At, Checked, Flight, Property, Side, UNIT, Waits, World, broken, units};
use crate::ErrorKind;
use crate::clock::Moment;

impl World {
    /// Takes a step, and checks everything.
    pub(super) fn take(&mut self, step: Move) -> Checked {
        self.seen.clear();
        self.go(step)?;
        self.check()
    }

    fn go(&mut self, step: Move) -> Checked {
        if let Some(fault) = step.fault() {
            self.spend(fault);
        }
        match step {
            Move::Join(seat) => {
                self.seats[seat as usize].joins -= 1;
                let limit = match self.config.seats[seat as usize].waits {
                    Waits::Never => self.now,
                    Waits::Units(count) => self.now.plus(units(count)),
                    Waits::Forever => Moment::NEVER,
                };
                self.join(seat as usize, limit)
            }
            Move::Collect(seat) => self.collect(seat as usize),
            Move::TimesUp(seat) => self.times_up(seat as usize),
            Move::Leave(seat) => self.leave(seat as usize),
            Move::Release(seat) => self.release_guard(seat as usize, true),
            Move::Drop(seat) => self.release_guard(seat as usize, false),
            Move::DropTwice(seat) => {
                let At::Holding { guard, .. } = self.seats[seat as usize].at.clone() else { return Ok(()) };
                let side = self.side_of(seat as usize);
                self.release_guard(seat as usize, false)?;
                self.ask(side, |state, at| state.release_guard(at, &guard, None)).map(|_| ())
            }
            Move::Attach(seat) => self.attach(seat as usize),
            Move::Detach(seat) => self.detach(seat as usize),
            Move::Downgrade(seat) => self.downgrade(seat as usize),
            Move::RenewNow(seat) => {
                let At::Holding { guard, .. } = self.seats[seat as usize].at.clone() else { return Ok(()) };
                let (side, by) = (self.side_of(seat as usize), self.seats[seat as usize].handle);
                self.ask(side, |state, at| state.renew_now(at, &guard, by)).map(|_| ())
            }
            Move::Execute(flight) => {
                self.execute(flight as usize);
                Ok(())
            }
            Move::Answer(flight) => self.answer(flight as usize),
            Move::RoundTrip(flight) => {
                self.execute(flight as usize);
                self.answer(flight as usize)
            }
            Move::Lose(flight) => self.lose(flight as usize),
            Move::Refuse(flight) => self.refuse(flight as usize, ErrorKind::Unavailable),
            Move::Break(flight) => self.refuse(flight as usize, ErrorKind::Backend),
            Move::Deliver(notification) => self.deliver(notification as usize),
            Move::DropNotification(notification) => {
                self.notifications.remove(notification as usize);
                Ok(())
            }
            Move::RepeatNotification(notification) => {
                self.notifications.push(self.notifications[notification as usize]);
                self.deliver(notification as usize)
            }
            Move::Forge(side) => self.forge(side as usize),
            Move::Force(side) => {
                let (side, key) = (side as usize, self.store.holders[0].key);
                let asks = Asks::Force(key, self.sides[side].leases(&name_of(key), None));
                let member = self.members.iter().position(|(of, ..)| *of == side).unwrap();
                self.flights.push(Flight { side, member, asks, by: None, tells: None, answer: None, unheard: false });
                Ok(())
            }
            Move::ForceElsewhere => {
                self.force(self.store.holders[0].key);
                Ok(())
            }
            Move::Forget | Move::Restart => {
                self.forget(step == Move::Restart);
                Ok(())
            }
            Move::Close(member) => self.close(member as usize),
            Move::Tick => {
                self.pass(UNIT);
                (0..self.sides.len()).try_for_each(|side| self.timer(side))
            }
            Move::Pause => {
                self.pass(UNIT);
                Ok(())
            }
            Move::Timer(side) => self.timer(side as usize),
        }
    }

    pub(super) fn pass(&mut self, by: std::time::Duration) {
        self.now = self.now.plus(by);
        self.store_settles();
    }

    pub(super) fn timer(&mut self, side: Side) -> Checked {
        if self.sides[side].next() > self.now {
            return Ok(());
        }
        self.feed(side, Event::Tick)?;
        if self.sides[side].next() <= self.now {
            return broken(Property::Liveness, "a timer fires at once again");
        }
        Ok(())
    }

    pub(super) fn side_of(&self, seat: usize) -> Side {
        self.members[self.config.seats[seat].member].0
    }
}
