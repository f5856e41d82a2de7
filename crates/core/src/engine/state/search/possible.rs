//! Which steps are possible next.

use super::super::check::number_of;
use super::super::event::Request;
use super::moves::{Fault, Move};
use super::world::{Asks, At, World};
use crate::Mode;

#[allow(clippy::cast_possible_truncation, reason = "the lists are short")]
fn small(index: usize) -> u8 {
    index as u8
}

impl World {
    /// All that may happen next.
    pub(super) fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::with_capacity(32);
        for index in 0..self.seats.len() {
            self.moves_of(index, &mut moves);
        }
        for (index, flight) in self.flights.iter().enumerate() {
            let at = small(index);
            match &flight.answer {
                None if flight.unheard => moves.push(Move::Execute(at)),
                None => {
                    moves.extend([Move::RoundTrip(at), Move::Execute(at)]);
                    moves.extend([Fault::Lose, Fault::Refuse, Fault::Break].map(|fault| fault.at(at)));
                }
                Some(_) => moves.extend([Move::Answer(at), Fault::Lose.at(at)]),
            }
        }
        for index in 0..self.notifications.len() {
            let at = small(index);
            moves.extend([Move::Deliver(at), Fault::DropNotification.at(at), Fault::RepeatNotification.at(at)]);
        }
        self.moves_of_others(&mut moves);
        moves.retain(|step| step.fault().is_none_or(|fault| self.may(fault)));
        moves
    }

    fn moves_of(&self, index: usize, moves: &mut Vec<Move>) {
        let seat = &self.seats[index];
        let at = small(index);
        match &seat.at {
            At::Away => {
                moves.extend((seat.joins > 0).then_some(Move::Join(at)));
                moves.extend((seat.joins > 0 && self.may_attach(index)).then_some(Move::Attach(at)));
            }
            At::Waiting { limit, offer, called, .. } => {
                moves.extend((offer.is_some() || *called).then_some(Move::Collect(at)));
                moves.extend((offer.is_none() && self.time_is_up(index)).then_some(Move::TimesUp(at)));
                moves.extend((*limit >= self.now).then_some(Fault::Leave.at(at)));
            }
            At::Holding { mode, .. } => {
                moves.extend([Move::Release(at), Move::Drop(at), Fault::Twice.at(at)]);
                if *mode == Mode::Exclusive {
                    moves.extend([Fault::Detach.at(at), Fault::Downgrade.at(at)]);
                }
                moves.push(Fault::RenewNow.at(at));
            }
        }
    }

    fn may_attach(&self, index: usize) -> bool {
        self.detached_lock.as_ref().is_some_and(|(grant, _)| grant.key == self.key_of(index))
    }

    fn moves_of_others(&self, moves: &mut Vec<Move>) {
        let is_held = !self.store.holders.is_empty();
        for side in 0..self.sides.len() {
            let at = small(side);
            moves.extend((self.sides[side].next() <= self.now).then_some(Move::Timer(at)));
            let listens = self.subscribed.iter().any(|(of, _)| *of == side);
            moves.extend((listens && !self.store.queue.is_empty()).then_some(Fault::Forge.at(at)));
            moves.extend(is_held.then_some(Fault::Force.at(at)));
        }
        if is_held {
            moves.extend([Fault::ForceElsewhere, Fault::Forget, Fault::Restart].map(|fault| fault.at(0)));
        }
        let open = self.closed.iter().enumerate().filter(|(_, closed)| !**closed);
        moves.extend(open.map(|(index, _)| Fault::Close.at(small(index))));
        if !self.is_still() {
            moves.extend([Move::Tick, Fault::Pause.at(0)]);
        }
    }

    /// Nothing changes any more as time passes.
    pub(super) fn is_still(&self) -> bool {
        self.store.holders.is_empty()
            && self.store.queue.is_empty()
            && self.sides.iter().all(|side| side.keys.iter().next().is_none())
            && self.seats.iter().all(|seat| matches!(seat.at, At::Away))
    }

    fn time_is_up(&self, index: usize) -> bool {
        let At::Waiting { id, limit, times_up, .. } = self.seats[index].at else { return false };
        let (side, member, _) = self.members[self.config.seats[index].member];
        let latest = self.sides[side].latest(member, limit);
        (!times_up && self.now >= limit) || (self.now >= latest && self.sides[side].is_waiting(&self.key_of(index), id))
    }
}

impl World {
    /// What a step is about, for people.
    pub(super) fn about(&self, step: Move) -> String {
        match step {
            Move::Execute(at)
            | Move::Answer(at)
            | Move::RoundTrip(at)
            | Move::Fault(Fault::Lose | Fault::Refuse | Fault::Break, at) => {
                let flight = &self.flights[at as usize];
                let asks = match &flight.asks {
                    Asks::Store(Request::Claim(id, claim)) => format!("claim {id:?} of {:?}", number_of(claim.owner)),
                    Asks::Store(Request::Release(id, grant)) => {
                        format!("release {id:?} of {:?}", number_of(grant.owner))
                    }
                    other => format!("{other:?}"),
                };
                format!("{asks} from {} {:?}", flight.side, flight.answer)
            }
            Move::Deliver(at) | Move::Fault(Fault::DropNotification | Fault::RepeatNotification, at) => {
                format!("{:?}", self.notifications[at as usize])
            }
            Move::Tick | Move::Fault(Fault::Pause, _) => format!("after {:?}", self.now),
            _ => String::new(),
        }
    }
}
