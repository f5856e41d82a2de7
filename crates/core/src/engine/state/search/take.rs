//! A step is taken.

use super::super::event::Event;
use super::key_names::name_of;
use super::moves::{Fault, Move};
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
            Move::Release(seat) => self.release_guard(seat as usize, true),
            Move::Drop(seat) => self.release_guard(seat as usize, false),
            Move::Attach(seat) => self.attach(seat as usize),
            Move::Execute(flight) => {
                self.execute(flight as usize);
                Ok(())
            }
            Move::Answer(flight) => self.answer(flight as usize),
            Move::RoundTrip(flight) => self.round_trip(flight as usize),
            Move::Deliver(notification) => self.deliver(notification as usize),
            Move::Tick => {
                self.pass(UNIT);
                (0..self.sides.len()).try_for_each(|side| self.timer(side))
            }
            Move::Timer(side) => self.timer(side as usize),
            Move::Fault(fault, at) => self.goes_wrong(fault, at as usize),
        }
    }

    fn goes_wrong(&mut self, fault: Fault, at: usize) -> Checked {
        self.spend(fault);
        match fault {
            Fault::Lose => return self.lose(at),
            Fault::Refuse => return self.refuse(at, ErrorKind::Unavailable),
            Fault::Break => return self.refuse(at, ErrorKind::Backend),
            Fault::Leave => return self.leave(at),
            Fault::Detach => return self.detach(at),
            Fault::Downgrade => return self.downgrade(at),
            Fault::Force => {
                let key = self.store.holders[0].key;
                let asks = Asks::Force(key, self.sides[at].leases(&name_of(key), None));
                let member = self.members.iter().position(|(of, ..)| *of == at).unwrap();
                let flight = Flight { side: at, member, asks, by: None, tells: None, answer: None, unheard: false };
                self.flights.push(flight);
            }
            Fault::ForceElsewhere => self.force(self.store.holders[0].key),
            Fault::Forget | Fault::Restart => self.forget(fault == Fault::Restart),
            Fault::Close => return self.close(at),
            Fault::DropNotification => _ = self.notifications.remove(at),
            Fault::RepeatNotification => {
                self.notifications.push(self.notifications[at]);
                return self.deliver(at);
            }
            Fault::Pause => self.pass(UNIT),
            Fault::RenewNow => {
                let At::Holding { guard, .. } = self.seats[at].at.clone() else { return Ok(()) };
                let (side, by) = (self.side_of(at), self.seats[at].handle);
                self.ask(side, |state, at| state.renew_now(at, &guard, by))?;
            }
            Fault::Forge => return self.forge(at),
            Fault::Twice => {
                let At::Holding { guard, .. } = self.seats[at].at.clone() else { return Ok(()) };
                let side = self.side_of(at);
                self.release_guard(at, false)?;
                self.ask(side, |state, at| state.release_guard(at, &guard, None))?;
            }
        }
        Ok(())
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
