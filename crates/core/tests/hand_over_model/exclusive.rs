//! Two processes that want one exclusive lock, and the store that grants it.

mod acts;

use acts::Draft;

use crate::search::{Machine, Step};

/// Time is kept as what is left of it, in ticks, so that it may pass for ever.
const LEASE: u8 = 3;
/// What a hand-over must leave of the lease.
const MINIMUM: u8 = 2;
/// How many guards the number field of a token tells apart.
const NUMBERS: u8 = 2;
/// The store grants no more tenures than that.
const TENURES: u8 = 2;
/// How many may wait in each process.
const ROOM: [usize; 2] = [2, 1];
/// How much may be under way at once.
const MESSAGES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// 1: a store grant brings a new, larger tenure number.
    NewNumber,
    /// 2: the count never wraps; at the limit the grant goes back.
    NoWrap,
    /// 3: a guard whose grant is another's by now does nothing.
    OwnGrantOnly,
    /// 4: no hand-over of a lease that is almost over.
    Minimum,
    /// 4: no hand-over while the outcome of a renewal is unknown.
    NoDoubt,
    /// 5: guards are lost before a new claim is sent.
    LossFirst,
    /// 5: a grant that comes when its waiter is gone goes back, for another may have been granted here since.
    WantedOnly,
    /// 6: an owner id is new for every claim.
    NewOwner,
    /// 7: after the bound this process rests for as long as others take to poll.
    Rest,
    /// 8: who is gone is passed over.
    SkipGone,
    /// 9: a successor gets what is left of the lease.
    RemainingLease,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    /// No two guards believe that they hold the lock: never in one process, and between processes unless the store
    /// lost one of their tenures.
    Exclusion,
    /// A token is larger than every one handed out before it: always in one process, and among processes unless it
    /// is of the tenure that the store lost.
    Tokens,
    /// A guard that is handed over can last, and no "not yours" to a question older than itself hits it.
    Birth,
    /// What the store has granted belongs to a guard, is asked for or being released, or runs out.
    NoOrphan,
    /// Between the bound and our next claim, others that wait have polled.
    Turns,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    holder: Option<Holder>,
    newest_tenure: u8,
    /// The tenure that the store lost.
    evicted: Option<u8>,
    processes: [Process; 2],
    messages: [Option<Message>; MESSAGES],
}

/// What the store knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Holder {
    owner: u8,
    tenure: u8,
    left: u8,
    /// Nobody will release it: its guard ran out, or the release came before the claim.
    runs_out: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Process {
    tenure: Option<Tenure>,
    /// Guards whose grant is over or another's may be dropped yet.
    has_stale: bool,
    /// A guard that believes wrongly that it holds the lock; none, if the rules are kept.
    misled: Option<Misled>,
    line: [Place; 2],
    rests: bool,
    /// The others have not polled since the bound.
    owes: bool,
    newest_token: u8,
}

/// What a process knows of its grant, and the guard on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Tenure {
    owner: u8,
    number: u8,
    left: u8,
    count: u8,
    has_guard: bool,
    /// A renewal was asked for, and no answer seen.
    in_doubt: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Misled {
    number: u8,
    left: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Place {
    #[default]
    Free,
    Waits,
    /// The waiter is gone, its place not yet.
    Gone,
}

/// What is under way between a process and the store, to be executed at any later moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Message {
    from: usize,
    asks: Ask,
    owner: u8,
    /// Ticks since it was sent.
    age: u8,
    answer: Option<Answer>,
    /// Whoever sent it has given up on the answer.
    unheard: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Answer {
    /// With the number of the tenure.
    Yes(u8),
    /// "Busy", or "not yours".
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Ask {
    Claim {
        /// The waiter is there still for whom it was sent.
        wanted: bool,
    },
    Renew {
        /// The count of the guard that was held then.
        count: u8,
    },
    Release,
}

impl Machine for State {
    type Rule = Rule;
    type Property = Property;

    const STEPS: usize = 14;

    fn steps(&self, dropped: Option<Rule>) -> Vec<Step<Self>> {
        let mut steps = Vec::new();
        let mut may = |act: &dyn Fn(&mut Draft) -> Option<&'static str>| {
            let mut draft = Draft { state: *self, dropped, broken: None };
            if let Some(what) = act(&mut draft) {
                draft.state.messages.sort_unstable();
                let broken = draft.broken.or_else(|| draft.state.broken());
                steps.push(Step { what, then: draft.state, broken });
            }
        };
        for (process, room) in ROOM.into_iter().enumerate() {
            // One process does all that can go wrong, so that the states stay few.
            if process == 0 {
                may(&|draft| draft.renew(process));
                for place in 0..room {
                    may(&|draft| draft.cancel(process, place));
                    may(&|draft| draft.leave(process, place));
                }
            }
            may(&|draft| draft.arrive(process));
            may(&|draft| draft.claim(process));
            may(&|draft| draft.end(process));
            may(&|draft| draft.end_stale(process));
        }
        for message in 0..MESSAGES {
            may(&|draft| draft.execute(message));
            may(&|draft| draft.answer(message));
            may(&|draft| draft.lose_answer(message));
        }
        may(&Draft::evict);
        may(&Draft::tick);
        steps
    }
}

impl State {
    fn broken(&self) -> Option<Property> {
        let believed = |process: usize| {
            let Process { tenure, misled, .. } = self.processes[process];
            let current = tenure.filter(|tenure| tenure.has_guard).map(|tenure| tenure.number);
            current.into_iter().chain(misled.map(|misled| misled.number))
        };
        let within = (0..2).any(|process| believed(process).count() > 1);
        let between = believed(0)
            .any(|here| believed(1).any(|there| self.evicted.is_none_or(|lost| lost != here && lost != there)));
        if within || between {
            return Some(Property::Exclusion);
        }
        let unguarded = self.processes.iter().filter_map(|process| process.tenure).any(|tenure| !tenure.has_guard);
        let forgotten = self.holder.is_some_and(|holder| {
            let misled =
                self.processes.iter().filter_map(|process| process.misled).any(|misled| misled.number == holder.tenure);
            !holder.runs_out && !misled && !self.is_cared_for(holder.owner)
        });
        (unguarded || forgotten).then_some(Property::NoOrphan)
    }

    fn is_cared_for(&self, owner: u8) -> bool {
        let held = self.processes.iter().filter_map(|process| process.tenure).any(|tenure| tenure.owner == owner);
        let asked = |message: &Message| message.owner == owner && !matches!(message.asks, Ask::Renew { .. });
        held || self.messages.iter().flatten().any(asked)
    }

    /// Whether this process would claim if it had its turn.
    fn polls(&self, process: usize) -> bool {
        let Process { tenure, line, rests, .. } = self.processes[process];
        tenure.is_none() && line[0] == Place::Waits && !rests
    }

    fn is_claiming(&self, process: usize, mut how: impl FnMut(&Message) -> bool) -> bool {
        let wanted = |message: &Message| message.from == process && message.asks == Ask::Claim { wanted: true };
        self.messages.iter().flatten().any(|message| wanted(message) && how(message))
    }

    fn new_owner(&self) -> u8 {
        let in_use = |owner: u8| self.is_cared_for(owner) || self.holder.is_some_and(|holder| holder.owner == owner);
        let asked = |owner: u8| self.messages.iter().flatten().any(|message| message.owner == owner);
        (2..=u8::MAX).find(|&owner| !in_use(owner) && !asked(owner)).unwrap()
    }
}

impl Ask {
    fn unwanted(self) -> Self {
        if let Self::Claim { .. } = self { Self::Claim { wanted: false } } else { self }
    }
}
