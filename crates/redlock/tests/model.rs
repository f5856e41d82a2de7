//! Every behaviour of fenced Redlock with three nodes and two or three attempts, searched breadth first.
//!
//! The adversary executes any request at any node at any later time or never, loses any reply, and drops any lock at
//! any moment: clocks may do what they like. The rules of this crate hold in all of it, and each rule that is left out
//! must be found missing.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and tells its figures")]

use std::collections::{HashSet, VecDeque};

const NODES: usize = 3;
const MAJORITY: usize = 2;
const MOST_ATTEMPTS: usize = 3;

/// Which rules are kept, and what the adversary may do beside the usual.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
struct Rules {
    attempts: usize,
    /// A node takes a number only above its own.
    strict: bool,
    /// Only nodes whose counters are in the number confirm it.
    only_the_counted_confirm: bool,
    /// One round instead of two: a node counts up with every grant, the number is the largest of a majority.
    one_round: bool,
    /// A claim may be executed twice.
    claims_repeat: bool,
    forgetting: Forgetting,
}

/// What a node does that lost its lock and its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forgetting {
    Never,
    /// It goes on as if nothing had been.
    Unnoticed,
    /// It answers nothing any more: its marker is gone.
    Marked,
}

const OURS: Rules = Rules {
    attempts: 2,
    strict: true,
    only_the_counted_confirm: true,
    one_round: false,
    claims_repeat: false,
    forgetting: Forgetting::Never,
};

/// One node, and what is under way between it and each attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Node {
    owner: Option<u8>,
    fence: u8,
    is_reset: bool,
    links: [Link; MOST_ATTEMPTS],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Link {
    claims: u8,
    /// What the node answered in the first round.
    reply: Option<u8>,
    counted: bool,
    confirm_sent: bool,
    confirmed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Attempt {
    phase: Phase,
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
struct State {
    nodes: [Node; NODES],
    attempts: [Attempt; MOST_ATTEMPTS],
    forgot: bool,
}

impl State {
    /// Nodes have no names, so that states that differ only in them are one.
    fn canonical(mut self) -> Self {
        self.nodes.sort_unstable();
        self
    }

    fn won(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|attempt| attempt.phase == Phase::Won)
    }

    /// What must never be: a number twice, or one that is not above those won before its attempt began.
    fn is_broken(&self) -> bool {
        let mut numbers: Vec<u8> = self.won().map(|attempt| attempt.number).collect();
        let won = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len() < won || self.won().any(|attempt| attempt.number <= attempt.floor)
    }

    fn successors(&self, rules: Rules) -> Vec<Self> {
        let mut next = Vec::new();
        for attempt in 0..rules.attempts {
            self.begin(attempt, rules, &mut next);
            self.count(attempt, rules, &mut next);
            self.win(attempt, rules, &mut next);
            for node in 0..NODES {
                self.claim(attempt, node, rules, &mut next);
                self.confirm(attempt, node, rules, &mut next);
            }
        }
        for node in 0..NODES {
            if self.nodes[node].owner.is_some() {
                let mut dropped = *self;
                dropped.nodes[node].owner = None;
                next.push(dropped);
            }
            if rules.forgetting != Forgetting::Never && !self.forgot {
                let mut reset = *self;
                reset.forgot = true;
                reset.nodes[node].owner = None;
                reset.nodes[node].fence = 0;
                reset.nodes[node].is_reset = rules.forgetting == Forgetting::Marked;
                next.push(reset);
            }
        }
        next
    }

    fn begin(&self, attempt: usize, rules: Rules, next: &mut Vec<Self>) {
        // In their order: which of them is called the first makes no difference.
        let first = attempt == 0 || self.attempts[attempt - 1].phase != Phase::Idle;
        if self.attempts[attempt].phase != Phase::Idle || !first {
            return;
        }
        let mut begun = *self;
        begun.attempts[attempt].phase = Phase::First;
        begun.attempts[attempt].floor = self.won().map(|attempt| attempt.number).max().unwrap_or(0);
        for node in &mut begun.nodes {
            node.links[attempt].claims = 1 + u8::from(rules.claims_repeat);
        }
        next.push(begun);
    }

    fn claim(&self, attempt: usize, node: usize, rules: Rules, next: &mut Vec<Self>) {
        let Node { owner, links, is_reset, .. } = self.nodes[node];
        if links[attempt].claims == 0 || is_reset {
            return;
        }
        let mut claimed = *self;
        let me = u8::try_from(attempt).unwrap();
        let asked = &mut claimed.nodes[node];
        asked.links[attempt].claims -= 1;
        if owner.is_none_or(|owner| owner == me) {
            if rules.one_round && owner.is_none() {
                asked.fence += 1;
            }
            asked.owner = Some(me);
            // The first reply is the one that is heard.
            asked.links[attempt].reply = links[attempt].reply.or(Some(asked.fence));
        }
        next.push(claimed);
    }

    /// The client has heard a majority, any of those that answered, and settles on a number.
    fn count(&self, attempt: usize, rules: Rules, next: &mut Vec<Self>) {
        if self.attempts[attempt].phase != Phase::First {
            return;
        }
        for heard in 0_u8..1 << NODES {
            let is_heard = |node: &usize| heard & (1 << node) != 0;
            let replies: Vec<Option<u8>> =
                (0..NODES).filter(is_heard).map(|node| self.nodes[node].links[attempt].reply).collect();
            if replies.len() < MAJORITY || replies.iter().any(Option::is_none) {
                continue;
            }
            let largest = replies.into_iter().flatten().max().unwrap();
            let mut counted = *self;
            if rules.one_round {
                counted.attempts[attempt].phase = Phase::Won;
                counted.attempts[attempt].number = largest;
            } else {
                counted.attempts[attempt].phase = Phase::Second;
                counted.attempts[attempt].number = largest + 1;
                for node in 0..NODES {
                    counted.nodes[node].links[attempt].counted = is_heard(&node);
                    counted.nodes[node].links[attempt].confirm_sent = true;
                }
            }
            next.push(counted);
        }
    }

    fn confirm(&self, attempt: usize, node: usize, rules: Rules, next: &mut Vec<Self>) {
        let Node { owner, fence, links, is_reset } = self.nodes[node];
        let number = self.attempts[attempt].number;
        let allowed = if rules.strict { fence < number } else { fence <= number };
        let is_owner = owner == Some(u8::try_from(attempt).unwrap());
        if !links[attempt].confirm_sent || is_reset || !is_owner || !allowed {
            return;
        }
        let mut confirmed = *self;
        confirmed.nodes[node].fence = number;
        confirmed.nodes[node].links[attempt].confirm_sent = false;
        confirmed.nodes[node].links[attempt].confirmed = true;
        next.push(confirmed);
    }

    fn win(&self, attempt: usize, rules: Rules, next: &mut Vec<Self>) {
        let counts = |node: &&Node| {
            let link = node.links[attempt];
            link.confirmed && (link.counted || !rules.only_the_counted_confirm)
        };
        if self.attempts[attempt].phase == Phase::Second && self.nodes.iter().filter(counts).count() >= MAJORITY {
            let mut won = *self;
            won.attempts[attempt].phase = Phase::Won;
            // What happens to its messages from here on changes nothing that is asked.
            next.push(won);
        }
    }
}

/// How many steps it takes to break it, or how many states there are in which it holds.
fn search(rules: Rules) -> Result<usize, usize> {
    let start = State::default();
    let mut seen = HashSet::from([start]);
    let mut queue = VecDeque::from([(start, 0)]);
    while let Some((state, steps)) = queue.pop_front() {
        for next in state.successors(rules) {
            let next = next.canonical();
            if next.is_broken() {
                println!("broken after {} steps, {} states: {rules:?}", steps + 1, seen.len());
                return Err(steps + 1);
            }
            if seen.insert(next) {
                queue.push_back((next, steps + 1));
            }
        }
    }
    println!("holds in {} states: {rules:?}", seen.len());
    Ok(seen.len())
}

#[test]
fn the_rules_hold_whatever_clocks_and_network_do() {
    assert!(search(OURS).is_ok_and(|states| states > 10_000));
}

#[test]
fn the_strict_comparison_alone_is_enough() {
    assert!(search(Rules { only_the_counted_confirm: false, ..OURS }).is_ok());
}

#[test]
fn without_either_rule_a_number_is_given_twice() {
    assert!(search(Rules { strict: false, only_the_counted_confirm: false, ..OURS }).is_err());
}

#[test]
fn without_the_strict_comparison_a_repeated_claim_breaks_it() {
    assert!(search(Rules { strict: false, claims_repeat: true, ..OURS }).is_err());
}

#[test]
fn one_round_is_not_enough() {
    assert!(search(Rules { one_round: true, attempts: 3, ..OURS }).is_err());
}

#[test]
fn a_node_that_forgets_breaks_it_unless_its_marker_tells() {
    assert!(search(Rules { forgetting: Forgetting::Unnoticed, ..OURS }).is_err());
    assert!(search(Rules { forgetting: Forgetting::Marked, ..OURS }).is_ok());
}
