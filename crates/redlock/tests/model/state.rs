use crate::numbers::{Decision, Told, decide};

const NODES: usize = 3;
const MAJORITY: usize = 2;
const MOST_ATTEMPTS: usize = 3;

/// Which rules are kept, and what the adversary may do beside the usual.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
pub(crate) struct Rules {
    pub(crate) attempts: usize,
    /// The largest number that is proposed; 0: none is.
    pub(crate) proposals: u8,
    /// The largest number in the second round, so that the search ends.
    pub(crate) numbers: u8,
    /// In the first round a node takes a proposal only above its own number.
    pub(crate) strict_at_first: bool,
    /// In the second round a node takes a number only above its own.
    pub(crate) strict: bool,
    /// Only nodes whose counters are in the number confirm it.
    pub(crate) only_the_counted_confirm: bool,
    /// One round in which a node counts up with every grant; the number is the largest of a majority.
    pub(crate) counting_round: bool,
    /// A claim may be executed twice.
    pub(crate) claims_repeat: bool,
    /// Nodes have clocks, which end here; they take no number ahead of them.
    pub(crate) clocks: Option<u8>,
    pub(crate) forgetting: Forgetting,
}

/// What a node does that lost its lock and its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgetting {
    Never,
    /// It goes on as if nothing had been.
    Unnoticed,
    /// It answers nothing any more: its marker is gone.
    Marked,
    /// It goes on from its clock.
    Seeded,
    /// It goes on from its clock, but takes numbers that are ahead of it.
    SeededOnly,
    /// It answers nothing until it has the counters of the others.
    Repaired {
        by_its_clock: bool,
    },
}

/// One node, and what is under way between it and each attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Node {
    owner: Option<u8>,
    /// The number beside the owner; 0: none.
    number: u8,
    fence: u8,
    clock: u8,
    is_reset: bool,
    links: [Link; MOST_ATTEMPTS],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Link {
    claims: u8,
    reply: Reply,
    counted: bool,
    confirm_sent: bool,
    confirmed: bool,
}

/// What the node answered in the first round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Reply {
    #[default]
    None,
    Floor(u8),
    Number(u8),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Attempt {
    phase: Phase,
    proposal: u8,
    number: u8,
    /// The largest number that was won before it began.
    floor: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Phase {
    #[default]
    Idle,
    First,
    Second,
    Won,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    nodes: [Node; NODES],
    attempts: [Attempt; MOST_ATTEMPTS],
    /// How often a node forgot.
    forgot: u8,
}

impl State {
    /// Nodes have no names, so that states that differ only in them are one.
    pub(crate) fn canonical(mut self) -> Self {
        self.nodes.sort_unstable();
        self
    }

    fn won(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|attempt| attempt.phase == Phase::Won)
    }

    /// What must never be: a number twice, or one that is not above those won before its attempt began.
    pub(crate) fn is_broken(&self) -> bool {
        let mut won = self.won();
        std::iter::from_fn(|| won.next()).enumerate().any(|(index, one)| {
            one.number <= one.floor || self.won().skip(index + 1).any(|other| other.number == one.number)
        })
    }

    pub(crate) fn successors(&self, rules: Rules, next: &mut Vec<Self>) {
        for attempt in 0..rules.attempts {
            self.begin(attempt, rules, next);
            self.count(attempt, rules, next);
            self.win(attempt, rules, next);
            for node in 0..NODES {
                self.claim(attempt, node, rules, next);
                self.confirm(attempt, node, rules, next);
            }
        }
        for node in 0..NODES {
            if self.nodes[node].owner.is_some() {
                self.with(node, next, |dropped| (dropped.owner, dropped.number) = (None, 0));
            }
            if rules.clocks.is_some_and(|last| self.nodes[node].clock < last) {
                self.with(node, next, |ticked| ticked.clock += 1);
            }
            self.forget(node, rules, next);
        }
    }

    fn with(&self, node: usize, next: &mut Vec<Self>, change: impl FnOnce(&mut Node)) {
        let mut changed = *self;
        change(&mut changed.nodes[node]);
        next.push(changed);
    }

    fn forget(&self, node: usize, rules: Rules, next: &mut Vec<Self>) {
        let is_reset = self.nodes[node].is_reset;
        let times = match rules.forgetting {
            Forgetting::Never => 0,
            // As many as make a majority.
            Forgetting::Seeded | Forgetting::SeededOnly => 2,
            Forgetting::Unnoticed | Forgetting::Marked | Forgetting::Repaired { .. } => 1,
        };
        if self.forgot < times {
            let forgetting = Self { forgot: self.forgot + 1, ..*self };
            forgetting.with(node, next, |reset| {
                (reset.owner, reset.number) = (None, 0);
                reset.fence = match rules.forgetting {
                    Forgetting::Seeded | Forgetting::SeededOnly => reset.clock,
                    _ => 0,
                };
                reset.is_reset = matches!(rules.forgetting, Forgetting::Marked | Forgetting::Repaired { .. });
            });
        }
        if let (true, Forgetting::Repaired { by_its_clock }) = (is_reset, rules.forgetting) {
            let others = (0..NODES).filter(|other| *other != node).map(|other| self.nodes[other].fence);
            let copied = others.max().unwrap_or_default();
            self.with(node, next, |repaired| {
                repaired.is_reset = false;
                repaired.fence = if by_its_clock { copied.max(repaired.clock) } else { copied };
            });
        }
    }

    fn begin(&self, attempt: usize, rules: Rules, next: &mut Vec<Self>) {
        // In their order: which of them is called the first makes no difference.
        let first = attempt == 0 || self.attempts[attempt - 1].phase != Phase::Idle;
        if self.attempts[attempt].phase != Phase::Idle || !first {
            return;
        }
        for proposal in 0..=rules.proposals {
            let mut begun = *self;
            let floor = self.won().map(|attempt| attempt.number).max().unwrap_or(0);
            begun.attempts[attempt] = Attempt { phase: Phase::First, proposal, number: 0, floor };
            for node in &mut begun.nodes {
                node.links[attempt].claims = 1 + u8::from(rules.claims_repeat);
            }
            next.push(begun);
        }
    }

    /// A claim that finds another owner changes nothing, as one that is never executed.
    fn claim(&self, attempt: usize, node: usize, rules: Rules, next: &mut Vec<Self>) {
        let me = u8::try_from(attempt).unwrap();
        let Attempt { proposal, phase, .. } = self.attempts[attempt];
        let Node { owner, links, is_reset, .. } = self.nodes[node];
        if links[attempt].claims == 0 || is_reset || owner.is_some_and(|owner| owner != me) {
            return;
        }
        self.with(node, next, |asked| {
            asked.links[attempt].claims -= 1;
            let floor = asked.fence;
            if owner.is_none() {
                let is_above = if rules.strict_at_first { asked.fence < proposal } else { asked.fence <= proposal };
                let is_taken = proposal > 0 && is_above && !is_ahead(proposal, asked, rules);
                asked.owner = Some(me);
                asked.number = if is_taken { proposal } else { 0 };
                asked.fence = match () {
                    () if rules.counting_round => asked.fence + 1,
                    () if is_taken => proposal,
                    () => asked.fence,
                };
            }
            // The first reply is the one that is heard, and none after the decision.
            if phase == Phase::First && asked.links[attempt].reply == Reply::None {
                asked.links[attempt].reply = match asked.number {
                    0 if rules.counting_round => Reply::Floor(asked.fence),
                    0 => Reply::Floor(floor),
                    number => Reply::Number(number),
                };
            }
        });
    }

    /// The client has heard a majority, any of those that answered, and decides.
    fn count(&self, attempt: usize, rules: Rules, next: &mut Vec<Self>) {
        if self.attempts[attempt].phase != Phase::First {
            return;
        }
        for heard in 0_u8..1 << NODES {
            let is_heard = |node: usize| heard & (1 << node) != 0;
            let replies: Vec<Reply> =
                (0..NODES).filter(|node| is_heard(*node)).map(|node| self.nodes[node].links[attempt].reply).collect();
            if replies.len() < MAJORITY || replies.contains(&Reply::None) {
                continue;
            }
            // Whatever the clocks are that they told.
            for clock in 1..=rules.numbers {
                let told: Vec<Told> = replies.iter().map(|reply| reply.told(clock.into())).collect();
                let (phase, number) = match decide(NODES, &told) {
                    _ if rules.counting_round => {
                        (Phase::Won, told.iter().map(|told| told.floor).max().unwrap_or_default())
                    }
                    Decision::Won(number) => (Phase::Won, number),
                    Decision::Write { number, .. } => (Phase::Second, number),
                    Decision::Early => continue,
                };
                let mut counted = *self;
                (counted.attempts[attempt].phase, counted.attempts[attempt].number) =
                    (phase, u8::try_from(number).unwrap());
                for node in 0..NODES {
                    let link = &mut counted.nodes[node].links[attempt];
                    link.reply = Reply::None;
                    if phase == Phase::Second {
                        (link.counted, link.confirm_sent) = (is_heard(node), true);
                    }
                }
                next.push(counted);
            }
        }
    }

    fn confirm(&self, attempt: usize, node: usize, rules: Rules, next: &mut Vec<Self>) {
        let asked = &self.nodes[node];
        let number = self.attempts[attempt].number;
        let is_above = if rules.strict { asked.fence < number } else { asked.fence <= number };
        let is_taken = asked.number == number || (is_above && !is_ahead(number, asked, rules));
        let is_owner = asked.owner == Some(u8::try_from(attempt).unwrap());
        if !asked.links[attempt].confirm_sent || asked.is_reset || !is_owner || !is_taken {
            return;
        }
        self.with(node, next, |confirmed| {
            if confirmed.number != number {
                (confirmed.number, confirmed.fence) = (number, number);
            }
            confirmed.links[attempt].confirm_sent = false;
            confirmed.links[attempt].confirmed = true;
        });
    }

    fn win(&self, attempt: usize, rules: Rules, next: &mut Vec<Self>) {
        let counts = |node: &&Node| {
            let link = node.links[attempt];
            link.confirmed && (link.counted || !rules.only_the_counted_confirm)
        };
        if self.attempts[attempt].phase == Phase::Second && self.nodes.iter().filter(counts).count() >= MAJORITY {
            let mut won = *self;
            won.attempts[attempt].phase = Phase::Won;
            // Of its messages, those that nodes may still carry out count.
            for node in &mut won.nodes {
                (node.links[attempt].counted, node.links[attempt].confirmed) = (false, false);
            }
            next.push(won);
        }
    }
}

impl Reply {
    fn told(self, clock: u64) -> Told {
        match self {
            Self::Number(number) => Told { clock, floor: number.into(), number: Some(number.into()) },
            Self::Floor(floor) => Told { clock, floor: floor.into(), number: None },
            Self::None => unreachable!("it is not heard"),
        }
    }
}

/// Whether the node refuses the number because its clock is not there yet.
fn is_ahead(number: u8, node: &Node, rules: Rules) -> bool {
    rules.clocks.is_some() && rules.forgetting != Forgetting::SeededOnly && number > node.clock
}
