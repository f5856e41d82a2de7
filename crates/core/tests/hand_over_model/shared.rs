//! Two processes whose readers share grants of one store.

use crate::search::{Machine, Step};

/// How many guards the number field of a token tells apart.
const NUMBERS: u8 = 4;
/// The store grants no more tenures than that.
const TENURES: u8 = 3;
/// How many may wait in each process.
const ROOM: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Who rides on a grant has queued before its claim was sent; else: before the answer came.
    QueuedBefore,
    /// A shared grant is not handed over.
    NoHandOver,
}

/// Tokens are unique; if one acquire returned before another was called, its token is the smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promise;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    newest_tenure: u8,
    /// A bit for every token that some acquire has returned.
    returned: u16,
    processes: [Process; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Process {
    line: [Option<Reader>; ROOM],
    claim: Claim,
    grant: Option<Grant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Reader {
    /// Every token below was returned before it called, or never will be.
    floor: u8,
    /// It was there when the claim was sent.
    rides: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Claim {
    #[default]
    None,
    Sent,
    Granted(u8),
}

/// The grant that a process had last, as long as there is a guard on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Grant {
    tenure: u8,
    next_number: u8,
    guards: u8,
}

impl Machine for State {
    type Rule = Rule;
    type Property = Promise;

    /// They all end before that.
    const STEPS: usize = 100;

    fn steps(&self, dropped: Option<Rule>) -> Vec<Step<Self>> {
        let mut steps = Vec::new();
        for process in 0..2 {
            steps.extend(self.arrive(process));
            steps.extend(self.claim(process));
            steps.extend(self.execute(process));
            steps.extend(self.answer(process, dropped));
            steps.extend(self.end(process, dropped));
        }
        steps
    }
}

impl State {
    fn arrive(mut self, process: usize) -> Option<Step<Self>> {
        let floor = u8::try_from(u16::BITS - self.returned.leading_zeros()).unwrap();
        let place = self.processes[process].line.iter_mut().find(|place| place.is_none())?;
        *place = Some(Reader { floor, rides: false });
        Some(Step { what: "a reader comes", then: self, broken: None })
    }

    fn claim(mut self, process: usize) -> Option<Step<Self>> {
        let Process { line, claim, .. } = &mut self.processes[process];
        if *claim != Claim::None || line[0].is_none() {
            return None;
        }
        *claim = Claim::Sent;
        line.iter_mut().flatten().for_each(|reader| reader.rides = true);
        Some(Step { what: "claims", then: self, broken: None })
    }

    fn execute(mut self, process: usize) -> Option<Step<Self>> {
        let claim = &mut self.processes[process].claim;
        if *claim != Claim::Sent || self.newest_tenure == TENURES {
            return None;
        }
        self.newest_tenure += 1;
        *claim = Claim::Granted(self.newest_tenure);
        Some(Step { what: "the store grants", then: self, broken: None })
    }

    /// The head is granted, and takes along who may ride.
    fn answer(mut self, process: usize, dropped: Option<Rule>) -> Option<Step<Self>> {
        let Claim::Granted(tenure) = self.processes[process].claim else { return None };
        self.processes[process].claim = Claim::None;
        self.processes[process].grant = Some(Grant { tenure, next_number: 0, guards: 0 });
        let mut kept = self.serve(process);
        let mut what = "is granted";
        while self.processes[process].line[0].is_some_and(|next| next.rides || dropped == Some(Rule::QueuedBefore)) {
            kept &= self.serve(process);
            what = "is granted, and another rides";
        }
        // Whoever it was claimed for may have been served meanwhile.
        let grant = &mut self.processes[process].grant;
        *grant = grant.filter(|grant| grant.guards > 0);
        Some(Step { what, then: self, broken: (!kept).then_some(Promise) })
    }

    fn end(mut self, process: usize, dropped: Option<Rule>) -> Option<Step<Self>> {
        let Process { line, grant, .. } = &mut self.processes[process];
        let ended = grant.as_mut()?;
        ended.guards -= 1;
        let hands_over = line[0].is_some() && ended.next_number < NUMBERS && dropped == Some(Rule::NoHandOver);
        if hands_over {
            let kept = self.serve(process);
            return Some(Step { what: "hands over", then: self, broken: (!kept).then_some(Promise) });
        }
        *grant = grant.filter(|grant| grant.guards > 0);
        Some(Step { what: "a guard ends", then: self, broken: None })
    }

    /// The first in line returns with the next token of the grant. True if that keeps the promise.
    fn serve(&mut self, process: usize) -> bool {
        let Process { line, grant, .. } = &mut self.processes[process];
        let (Some(reader), Some(grant)) = (line[0].take(), grant) else { return true };
        line.rotate_left(1);
        let token = (grant.tenure - 1) * NUMBERS + grant.next_number;
        grant.next_number += 1;
        grant.guards += 1;
        let unique = self.returned & (1 << token) == 0;
        self.returned |= 1 << token;
        unique && token >= reader.floor
    }
}
