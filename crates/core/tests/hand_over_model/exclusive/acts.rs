//! What can happen.

use super::{
    Answer, Ask, Holder, LEASE, MINIMUM, Message, Misled, NUMBERS, Place, Process, Property, ROOM, Rule, State,
    TENURES, Tenure,
};

/// A state that is being changed. What is not possible gives `None`, and is as if it had not been tried.
pub(super) struct Draft {
    pub(super) state: State,
    pub(super) dropped: Option<Rule>,
    pub(super) broken: Option<Property>,
}

impl Draft {
    fn keeps(&self, rule: Rule) -> bool {
        self.dropped != Some(rule)
    }

    fn process(&mut self, process: usize) -> &mut Process {
        &mut self.state.processes[process]
    }

    fn send(&mut self, from: usize, asks: Ask, owner: u8) -> Option<()> {
        let slot = self.state.messages.iter_mut().find(|slot| slot.is_none())?;
        *slot = Some(Message { from, asks, owner, age: 0, answer: None, unheard: false });
        Some(())
    }

    pub(super) fn arrive(&mut self, process: usize) -> Option<&'static str> {
        let line = &mut self.process(process).line[..ROOM[process]];
        *line.iter_mut().find(|place| **place == Place::Free)? = Place::Waits;
        Some("a waiter comes")
    }

    pub(super) fn cancel(&mut self, process: usize, place: usize) -> Option<&'static str> {
        let waiter = &mut self.process(process).line[place];
        (*waiter == Place::Waits).then(|| *waiter = Place::Gone)?;
        if place == 0 {
            self.abandon_claim(process);
        }
        Some("a waiter is cancelled")
    }

    fn abandon_claim(&mut self, process: usize) {
        for message in self.state.messages.iter_mut().flatten().filter(|message| message.from == process) {
            if let Ask::Claim { wanted } = &mut message.asks {
                *wanted = false;
            }
        }
    }

    pub(super) fn leave(&mut self, process: usize, place: usize) -> Option<&'static str> {
        (self.process(process).line[place] == Place::Gone).then(|| self.remove(process, place))?;
        Some("a place is given up")
    }

    fn remove(&mut self, process: usize, place: usize) {
        let Process { line, rests, owes, .. } = self.process(process);
        line[place] = Place::Free;
        line[place..].rotate_left(1);
        if line[0] == Place::Free {
            (*rests, *owes) = (false, false);
        }
    }

    pub(super) fn claim(&mut self, process: usize) -> Option<&'static str> {
        let Process { tenure, line, rests, owes, .. } = *self.process(process);
        let head_waits = tenure.is_none() && line[0] == Place::Waits;
        if !head_waits || (rests && self.keeps(Rule::Rest)) || self.state.is_claiming(process, |_| true) {
            return None;
        }
        if owes && self.state.polls(1 - process) {
            self.broken = Some(Property::Turns);
        }
        self.process(1 - process).owes = false;
        let reused = u8::from(process == 1);
        let owner = if self.keeps(Rule::NewOwner) { self.state.new_owner() } else { reused };
        self.send(process, Ask::Claim { wanted: true }, owner)?;
        Some("claims")
    }

    pub(super) fn renew(&mut self, process: usize) -> Option<&'static str> {
        let heard = |message: &Message| {
            message.from == process && matches!(message.asks, Ask::Renew { .. }) && !message.unheard
        };
        if self.state.messages.iter().flatten().any(heard) {
            return None;
        }
        let tenure = self.process(process).tenure.as_mut()?;
        tenure.in_doubt = true;
        let (asks, owner) = (Ask::Renew { count: tenure.count }, tenure.owner);
        self.send(process, asks, owner)?;
        Some("renews")
    }

    /// A guard is dropped or released.
    pub(super) fn end(&mut self, process: usize) -> Option<&'static str> {
        let what = self.give_up(process)?;
        self.process(process).has_stale = true;
        Some(what)
    }

    /// A guard is dropped or released that has nothing to release any more.
    pub(super) fn end_stale(&mut self, process: usize) -> Option<&'static str> {
        let Process { has_stale, tenure, .. } = *self.process(process);
        let Tenure { left, number, .. } = tenure.filter(|_| has_stale && !self.keeps(Rule::OwnGrantOnly))?;
        self.give_up(process)?;
        self.process(process).misled = Some(Misled { number, left });
        Some("a stale guard ends")
    }

    /// Hands the grant over, or back to the store.
    fn give_up(&mut self, process: usize) -> Option<&'static str> {
        let Tenure { owner, left, count, in_doubt, .. } = self.process(process).tenure?;
        let lasts = left >= MINIMUM || !self.keeps(Rule::Minimum);
        let mut what = "releases";
        if lasts && !(in_doubt && self.keeps(Rule::NoDoubt)) {
            if count + 1 == NUMBERS && self.keeps(Rule::NoWrap) {
                what = "releases at the bound";
                self.rest(process);
            } else if self.hand_over(process) {
                return Some("hands over");
            }
        }
        self.process(process).tenure = None;
        self.send(process, Ask::Release, owner)?;
        Some(what)
    }

    fn rest(&mut self, process: usize) {
        if self.process(process).line[0] != Place::Free {
            let other = 1 - process;
            let owes = self.state.polls(other) && !self.state.is_claiming(other, |claim| claim.answer.is_none());
            let process = self.process(process);
            (process.rests, process.owes) = (true, owes);
        }
    }

    fn hand_over(&mut self, process: usize) -> bool {
        loop {
            let first = self.process(process).line[0];
            if first == Place::Free {
                return false;
            }
            self.abandon_claim(process);
            self.remove(process, 0);
            let (skips_gone, lease_goes_on) = (self.keeps(Rule::SkipGone), self.keeps(Rule::RemainingLease));
            let Some(tenure) = &mut self.process(process).tenure else { return false };
            if first == Place::Gone {
                if skips_gone {
                    continue;
                }
                tenure.has_guard = false;
                return true;
            }
            tenure.count = (tenure.count + 1) % NUMBERS;
            tenure.has_guard = true;
            let too_short = tenure.left < MINIMUM;
            if !lease_goes_on {
                tenure.left = LEASE;
            }
            if too_short {
                self.broken = Some(Property::Birth);
            }
            self.is_born(process);
            return true;
        }
    }

    /// A guard with a token reaches a waiter.
    fn is_born(&mut self, process: usize) {
        let State { processes, evicted, .. } = &self.state;
        let Some(Tenure { number, count, .. }) = processes[process].tenure else { return };
        let token = number * NUMBERS + count;
        let is_evicted = *evicted == Some(number);
        if token <= processes[process].newest_token || (token <= processes[1 - process].newest_token && !is_evicted) {
            self.broken = Some(Property::Tokens);
        }
        self.process(process).newest_token = token;
    }

    fn lose(&mut self, process: usize) {
        let loses_first = self.keeps(Rule::LossFirst);
        let process = self.process(process);
        if let Some(Tenure { left, number, .. }) = process.tenure.take() {
            process.has_stale = true;
            process.misled = (left > 0 && !loses_first).then_some(Misled { number, left });
        }
    }

    /// The store executes what reached it.
    pub(super) fn execute(&mut self, message: usize) -> Option<&'static str> {
        let Message { asks, owner, answer, unheard, .. } = self.state.messages[message]?;
        if answer.is_some() {
            return None;
        }
        let is_ours = |holder: &Holder| holder.owner == owner;
        let (what, answer) = match asks {
            Ask::Claim { .. } if self.state.holder.is_none_or(|holder| is_ours(&holder)) => {
                self.grant(owner, unheard)?;
                ("the store grants", Answer::Yes(self.state.newest_tenure))
            }
            Ask::Claim { .. } => ("the store is busy", Answer::No),
            Ask::Renew { .. } => match self.state.holder.as_mut().filter(|holder| is_ours(holder)) {
                Some(holder) => {
                    holder.left = LEASE;
                    ("the store renews", Answer::Yes(holder.tenure))
                }
                None => ("the store does not renew", Answer::No),
            },
            Ask::Release => {
                self.state.holder = self.state.holder.filter(|holder| !is_ours(holder));
                ("the store releases", Answer::Yes(0))
            }
        };
        let answered = Message { answer: Some(answer), ..self.state.messages[message]? };
        // Whoever releases draws no consequence from the answer.
        self.state.messages[message] = (!unheard && asks != Ask::Release).then_some(answered);
        Some(what)
    }

    fn grant(&mut self, owner: u8, unheard: bool) -> Option<()> {
        if self.state.newest_tenure == TENURES {
            return None;
        }
        if self.keeps(Rule::NewNumber) || self.state.newest_tenure == 0 {
            self.state.newest_tenure += 1;
        }
        let releases = |message: &Message| message.owner == owner && message.asks == Ask::Release;
        let runs_out = unheard && !self.state.messages.iter().flatten().any(releases);
        self.state.holder = Some(Holder { owner, tenure: self.state.newest_tenure, left: LEASE, runs_out });
        Some(())
    }

    /// An answer arrives.
    pub(super) fn answer(&mut self, message: usize) -> Option<&'static str> {
        let Message { from, asks, owner, age, answer: Some(answer), .. } = self.state.messages[message]? else {
            return None;
        };
        self.state.messages[message] = None;
        match (asks, answer) {
            (Ask::Claim { .. }, Answer::No) => Some("hears that it is busy"),
            (Ask::Claim { wanted }, Answer::Yes(number)) => self.granted(from, owner, number, LEASE - age, wanted),
            (Ask::Renew { count }, answer) => {
                let left = (answer != Answer::No).then_some(LEASE - age);
                Some(self.renewed(from, owner, count, left))
            }
            (Ask::Release, _) => None,
        }
    }

    fn granted(&mut self, process: usize, owner: u8, number: u8, left: u8, wanted: bool) -> Option<&'static str> {
        if left == 0 || (!wanted && self.keeps(Rule::WantedOnly)) {
            self.send(process, Ask::Release, owner)?;
            return Some("a grant comes that goes back");
        }
        let beside = self.process(process).tenure.map(|Tenure { number, left, .. }| Misled { number, left });
        let tenure = Tenure { owner, number, left, count: 0, has_guard: true, in_doubt: false };
        let Process { tenure: current, misled, .. } = self.process(process);
        (*current, *misled) = (Some(tenure), misled.or(beside));
        if !wanted {
            return self.give_up(process);
        }
        self.remove(process, 0);
        self.is_born(process);
        Some("is granted")
    }

    fn renewed(&mut self, process: usize, owner: u8, count: u8, left: Option<u8>) -> &'static str {
        let Some(tenure) = self.process(process).tenure.as_mut().filter(|tenure| tenure.owner == owner) else {
            return "hears of what is over";
        };
        if let Some(left) = left {
            tenure.in_doubt = false;
            tenure.left = tenure.left.max(left);
            return "is renewed";
        }
        if tenure.count != count {
            self.broken = Some(Property::Birth);
        }
        self.lose(process);
        "hears that it is not the holder"
    }

    /// Whoever asked gives up on the answer, and the question may be executed yet.
    pub(super) fn lose_answer(&mut self, message: usize) -> Option<&'static str> {
        let Message { from, asks, owner, answer, unheard, .. } = self.state.messages[message]?;
        // A release is sent again until it is executed.
        if unheard || asks == Ask::Release {
            return None;
        }
        let lost = Message { unheard: true, age: 0, asks: asks.unwanted(), ..self.state.messages[message]? };
        self.state.messages[message] = answer.is_none().then_some(lost);
        if matches!(asks, Ask::Claim { .. }) {
            self.send(from, Ask::Release, owner)?;
        }
        Some("an answer is lost")
    }

    pub(super) fn evict(&mut self) -> Option<&'static str> {
        if self.state.evicted.is_some() {
            return None;
        }
        self.state.evicted = Some(self.state.holder.take()?.tenure);
        Some("the store loses the lock")
    }

    pub(super) fn tick(&mut self) -> Option<&'static str> {
        let before = self.state;
        // A rest is as long as others take to poll.
        if (0..2).any(|process| before.processes[process].owes && before.polls(1 - process)) {
            return None;
        }
        let mut what = "time passes";
        for process in 0..2 {
            let Process { tenure, misled, rests, owes, .. } = self.process(process);
            (*rests, *owes) = (false, false);
            *misled = misled
                .map(|Misled { number, left }| Misled { number, left: left - 1 })
                .filter(|misled| misled.left > 0);
            if let Some(Tenure { left, owner, .. }) = tenure {
                *left -= 1;
                if *left == 0 {
                    let owner = *owner;
                    what = "a lease ends";
                    self.lose(process);
                    if let Some(holder) = self.state.holder.as_mut().filter(|holder| holder.owner == owner) {
                        holder.runs_out = true;
                    }
                }
            }
        }
        for message in self.state.messages.iter_mut().flatten() {
            if !message.unheard && message.asks != Ask::Release {
                message.age = LEASE.min(message.age + 1);
            }
        }
        if let Some(holder) = &mut self.state.holder {
            holder.left -= 1;
            self.state.holder = self.state.holder.filter(|holder| holder.left > 0);
        }
        (self.state != before).then_some(what)
    }
}
