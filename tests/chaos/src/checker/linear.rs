//! Whether the answers of a register can be explained by carrying out its requests one after the other, each at a moment
//! between its call and its answer.
//!
//! The search goes through the calls and answers in the order of time and keeps every state in which the register may be. A
//! request is carried out in it no sooner than an answer needs it, and only where its own answer then fits: so the states
//! stay few. What was asked and never answered may be carried out at any later time.

use std::collections::HashSet;

use super::findings::{Findings, Scene};
use super::ops::{Answer, Request};
use super::requests::{Sent, by_register};
use super::terms::Rule;
use super::work::Work;

/// More states than these at one time are given up: what follows in that register is not decided.
const MOST_STATES: usize = 4096;

/// How many registers could not be decided.
pub(super) fn check(sent: &[Sent<'_>], findings: &mut Findings<'_>, work: &Work) -> u64 {
    let mut undecided = 0;
    for sent in by_register(sent, work) {
        match Search::of(sent, work).run(work) {
            Outcome::Explained => {}
            Outcome::Undecided => {
                undecided += 1;
                let what = format!("register {:?}: more than {MOST_STATES} states", sent[0].request.register);
                findings.add(Rule::Undecided, vec![sent[0].request.called.line], what);
            }
            Outcome::Unexplained { answer, pending } => tell(sent, answer, &pending, findings),
        }
    }
    undecided
}

fn tell(sent: &[Sent<'_>], answer: usize, pending: &[usize], findings: &mut Findings<'_>) {
    let told = &sent[answer];
    let what = format!(
        "no order of the requests to register {:?} explains the answer to client {}, with {} other requests under way",
        told.request.register,
        told.client,
        pending.len()
    );
    let line = |sent: &Sent<'_>| sent.request.answer.map(|(at, _)| at.line);
    let lines = pending.iter().map(|other| sent[*other].request.called.line);
    let to = told.request.answer.map_or(told.request.called.at, |(at, _)| at.at);
    let scene = Scene { from: told.request.called.at, to, lease: 0, key: "", clients: &[told.client] };
    findings.add_at(
        Rule::NotLinearizable,
        &scene,
        lines.chain([told.request.called.line]).chain(line(told)).collect(),
        what,
    );
}

enum Outcome {
    Explained,
    Undecided,
    /// By index of the request.
    Unexplained {
        answer: usize,
        pending: Vec<usize>,
    },
}

/// A state that the register may be in.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    fence: Option<u64>,
    value: Option<u64>,
    /// Which of the requests under way are carried out: a bit for each place.
    done: u64,
}

struct Search<'s, 'h> {
    sent: &'s [Sent<'h>],
    /// The moment, whether it is an answer, and the request.
    moments: Vec<(u64, bool, usize)>,
    /// The requests under way, by place.
    places: [Option<usize>; 64],
    states: Vec<State>,
}

impl<'s, 'h> Search<'s, 'h> {
    fn of(sent: &'s [Sent<'h>], work: &Work) -> Self {
        let mut seen: Vec<u64> = sent.iter().filter_map(|sent| sent.request.saw()).collect();
        work.sort(&mut seen, |value| *value);
        // Who carries it out or not: nobody's answer depends on it.
        let matters = |request: &Request<'_>| {
            let seen = |value: &u64| seen.get(work.count_before(&seen, |other| other < value)) == Some(value);
            !request.unknown() || request.token.is_some() || request.writes.as_ref().is_some_and(seen)
        };
        let calls = sent.iter().enumerate().filter(|(_, sent)| matters(&sent.request));
        let calls = calls.map(|(number, sent)| (sent.request.called.at, false, number));
        let answers = sent.iter().enumerate().filter_map(|(number, sent)| {
            let (at, answer) = sent.request.answer?;
            (answer != Answer::Unknown).then_some((at.at, true, number))
        });
        let mut moments: Vec<_> = calls.chain(answers).collect();
        // Of one moment, calls come first: then the two requests may have met.
        work.sort(&mut moments, |moment| *moment);
        Self { sent, moments, places: [None; 64], states: vec![State { fence: None, value: None, done: 0 }] }
    }

    fn run(&mut self, work: &Work) -> Outcome {
        for (_, answered, number) in std::mem::take(&mut self.moments) {
            if !answered {
                let Some(place) = self.places.iter().position(Option::is_none) else { return Outcome::Undecided };
                self.places[place] = Some(number);
                continue;
            }
            let Some(place) = self.places.iter().position(|at| *at == Some(number)) else { continue };
            let Some(states) = self.carried_out(place, work) else { return Outcome::Undecided };
            if states.is_empty() {
                let pending = self.places.iter().flatten().copied().filter(|other| *other != number);
                return Outcome::Unexplained { answer: number, pending: pending.collect() };
            }
            self.states = states;
            self.places[place] = None;
            self.forget();
        }
        Outcome::Explained
    }

    /// All states in which the request at this place is carried out, without its bit. `None`: too many.
    fn carried_out(&self, place: usize, work: &Work) -> Option<Vec<State>> {
        let mut seen: HashSet<State> = self.states.iter().copied().collect();
        let mut next = self.states.clone();
        let mut after = HashSet::new();
        while let Some(state) = next.pop() {
            if state.done & (1 << place) != 0 {
                after.insert(State { done: state.done & !(1 << place), ..state });
                continue;
            }
            for (other, number) in self.places.iter().enumerate() {
                let Some(number) = number.filter(|_| state.done & (1 << other) == 0) else { continue };
                work.count();
                let Some(then) = step(&self.sent[number].request, state) else { continue };
                let then = State { done: state.done | 1 << other, ..then };
                if seen.insert(then) {
                    next.push(then);
                }
            }
            if seen.len() > MOST_STATES {
                return None;
            }
        }
        Some(after.into_iter().collect())
    }

    /// Gives up the places of requests without an answer that have no effect any more: carried out, or refused by now.
    fn forget(&mut self) {
        for place in 0..self.places.len() {
            let Some(number) = self.places[place] else { continue };
            let request = &self.sent[number].request;
            let bit = 1 << place;
            let over =
                |state: &State| state.done & bit != 0 || (request.token.is_some() && request.token < state.fence);
            if request.unknown() && self.states.iter().all(over) {
                self.places[place] = None;
                for state in &mut self.states {
                    state.done &= !bit;
                }
            }
        }
    }
}

/// The state after a request, if its answer fits. One without an answer is carried out where that has an effect.
fn step(request: &Request<'_>, state: State) -> Option<State> {
    let refused = request.token.is_some() && request.token < state.fence;
    let after = State { fence: state.fence.max(request.token), value: request.writes.or(state.value), ..state };
    match request.answer.map_or(Answer::Unknown, |(_, answer)| answer) {
        Answer::Refused => refused.then_some(state),
        _ if refused => None,
        Answer::Wrote { previous } => (previous == state.value).then_some(after),
        Answer::Read { value, fence } => (value == state.value && fence == after.fence).then_some(after),
        Answer::Unknown => (after != state).then_some(after),
    }
}
