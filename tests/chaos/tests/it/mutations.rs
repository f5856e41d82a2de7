//! Good stories one after the other pass, and a mutation that matters is found, wherever it is made.

use std::collections::BTreeMap;

use leasehold_chaos::checker::{Rule, Terms, check};
use leasehold_chaos::history::{Event, History, Mode, NEMESIS, Record, Target};
use leasehold_chaos::register::Answer;
use leasehold_testkit::test;
use proptest::prelude::*;
use proptest::sample::select;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::judge::WITHOUT_EXCUSES;
use crate::story::{Story, stories};

/// Makes a history wrong at the site that is chosen among all where it can; `None`: there is none.
type Mutation = fn(&mut Vec<Record>, usize) -> Option<()>;

const MUTATIONS: &[(Rule, Mutation)] = &[
    (Rule::Overlap, |records, site| granted_together(records, site, [Mode::Exclusive; 2])),
    (Rule::ReaderBesideWriter, |records, site| granted_together(records, site, [Mode::Exclusive, Mode::Shared])),
    (Rule::DuplicateToken, |records, site| token_of_another(records, site)),
    (Rule::StaleAttach, text_attached_twice),
    (Rule::BackwardToken, |records, site| tokens_swapped(records, site)),
    (Rule::StaleWrite, |records, site| smaller_token_accepted(records, site)),
    (Rule::LostUpdate, |records, site| value_lost(records, site)),
    (Rule::HeldAfterEnd, held_after_loss),
    (Rule::Unresolved, answer_missing),
    (Rule::Malformed, answer_repeated),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mutation_that_matters_is_found(seed: u64, site: usize, stories in 40_usize..100, mutation in select(MUTATIONS)) {
        let (rule, mutate) = mutation;
        let mut records = history(seed, stories);
        prop_assume!(mutate(&mut records, site).is_some());
        let history = History::of(records);
        let verdict = check(&history, &Terms::default());
        // Where the wrong token is that of an attached lock, it is found as such.
        let of_a_text = matches!(rule, Rule::DuplicateToken | Rule::BackwardToken).then_some(Rule::StaleAttach);
        let found = verdict.broken.contains_key(&rule) || of_a_text.is_some_and(|of| verdict.broken.contains_key(&of));
        prop_assert!(found, "{rule}: {:?}\n{}", verdict.broken, verdict.explain(&history));
    }
}

#[test]
fn each_mutation_finds_its_sites() {
    for (rule, mutate) in MUTATIONS {
        let made = (0..20).filter(|seed| mutate(&mut history(*seed, 100), 1).is_some()).count();
        assert!(made >= 10, "{rule}: only {made} of 20 histories have a site for it");
    }
}

/// Were the work to grow with the square of the events, it would not end.
#[test]
fn a_million_events_that_are_right_pass() {
    let history = History::of(history(7, 125_000));
    assert!(history.lines.len() >= 1_000_000, "{}", history.lines.len());
    let verdict = check(&history, &Terms::default());
    assert!(verdict.passed(), "{}", verdict.explain(&history));
}

/// So many good stories of the same keys, one after the other, in an order that the seed says.
fn history(seed: u64, count: usize) -> Vec<Record> {
    let mut random = SmallRng::seed_from_u64(seed);
    let all: Vec<Story> = WITHOUT_EXCUSES.into_iter().flat_map(stories).collect();
    let drawn = (1..=count).map(|number| (number, &all[random.random_range(0..all.len())].good.lines));
    drawn.flat_map(|(number, lines)| lines.iter().map(move |line| later(line.record.clone(), number as u64))).collect()
}

/// The record of a later story, with other clients, ops and tokens.
fn later(mut record: Record, number: u64) -> Record {
    let other_clients = u32::try_from(number * 10).unwrap();
    record.at += number * 20_000_000_000;
    record.op += number * 1000;
    if record.client != NEMESIS {
        record.client += other_clients;
    }
    match &mut record.event {
        Event::Granted { token, .. } | Event::Asked { token: Some(token), .. } => *token += number * 1000,
        Event::Fault { target: Target::Client(client), .. } => *client += other_clients,
        _ => {}
    }
    record
}

/// An op that was granted its lock.
#[derive(Clone, Debug)]
struct Holding {
    key: String,
    mode: Mode,
    plain: bool,
    op: u64,
    token: u64,
    called: usize,
    granted: usize,
    held: usize,
}

/// All pairs of two granted ops of one key.
fn pairs(records: &[Record], fit: impl Fn(&Holding, &Holding) -> bool) -> Vec<(Holding, Holding)> {
    let (mut ops, mut calls) = (BTreeMap::new(), BTreeMap::new());
    for (at, record) in records.iter().enumerate() {
        let op = record.op;
        match &record.event {
            Event::Called { key, mode, session, attach, .. } => {
                calls.insert(op, (at, key.clone(), *mode, session.is_none() && !attach));
            }
            Event::Granted { token, .. } => {
                let (called, key, mode, plain) = calls[&op].clone();
                ops.insert(op, Holding { key, mode, plain, op, token: *token, called, granted: at, held: at });
            }
            Event::Held {} => ops.get_mut(&op).unwrap().held = at,
            _ => {}
        }
    }
    let pairs = ops.values().flat_map(|one| ops.values().map(move |other| (one, other)));
    let pairs = pairs.filter(|(one, other)| one.key == other.key && one.op != other.op && fit(one, other));
    pairs.map(|(one, other)| (one.clone(), other.clone())).collect()
}

fn one_of<T: Clone>(sites: &[T], site: usize) -> Option<T> {
    sites.get(site % sites.len().max(1)).cloned()
}

/// One of the places of all records that fit.
fn place(records: &[Record], site: usize, fit: impl Fn(usize) -> bool) -> Option<usize> {
    one_of(&(0..records.len()).filter(|at| fit(*at)).collect::<Vec<_>>(), site)
}

fn of_one_op(one: &Record, other: &Record) -> bool {
    (one.client, one.op) == (other.client, other.op)
}

fn set_token(records: &mut [Record], at: usize, new: u64) {
    let Event::Granted { token, .. } = &mut records[at].event else { panic!("this is no grant") };
    *token = new;
}

/// The second is granted as soon as the first, which goes on.
fn granted_together(records: &mut [Record], site: usize, modes: [Mode; 2]) -> Option<()> {
    let at = |place: usize| records[place].at;
    let sites = pairs(records, |one, other| {
        let windows = at(one.held) > at(one.granted) + 2 && at(other.held) > at(other.granted);
        let these = [one.mode, other.mode] == modes || [other.mode, one.mode] == modes;
        windows && at(one.granted) < at(other.granted) && one.plain && other.plain && these
    });
    let (one, other) = one_of(&sites, site)?;
    let moment = at(one.granted) + 1;
    records[other.called].at = at(other.called).min(moment);
    records[other.granted].at = moment;
    Some(())
}

fn token_of_another(records: &mut [Record], site: usize) -> Option<()> {
    let (one, other) = one_of(&pairs(records, |one, other| one.plain && other.plain), site)?;
    set_token(records, other.granted, one.token);
    Some(())
}

fn tokens_swapped(records: &mut [Record], site: usize) -> Option<()> {
    let at = |place: usize| records[place].at;
    let later = |one: &Holding, other: &Holding| at(one.granted) < at(other.called) && one.token < other.token;
    let (one, other) = one_of(&pairs(records, later), site)?;
    set_token(records, one.granted, other.token);
    set_token(records, other.granted, one.token);
    Some(())
}

fn text_attached_twice(records: &mut Vec<Record>, site: usize) -> Option<()> {
    let attaches = |record: &Record| matches!(record.event, Event::Called { attach: true, .. });
    let at = place(records, site, |at| {
        let granted = matches!(records[at].event, Event::Granted { .. });
        granted && records.iter().any(|other| of_one_op(other, &records[at]) && attaches(other))
    })?;
    let begin = |record: &&Record| matches!(record.event, Event::Called { .. } | Event::Granted { .. });
    let of_op: Vec<Record> = records.iter().filter(|one| of_one_op(one, &records[at])).filter(begin).cloned().collect();
    records.extend(of_op.into_iter().map(|record| Record { op: u64::MAX, task: u32::MAX, ..record }));
    Some(())
}

fn smaller_token_accepted(records: &mut [Record], site: usize) -> Option<()> {
    let fenced = |at: usize| match &records[at].event {
        Event::Asked { register, token: Some(token), writes: Some(_) } => Some((register.clone(), *token)),
        _ => None,
    };
    // The answer of each that was accepted.
    let accepted = (0..records.len()).filter(|call| fenced(*call).is_some()).filter_map(|call| {
        let answer = call + 1 + records[call + 1..].iter().position(|record| of_one_op(record, &records[call]))?;
        matches!(records[answer].event, Event::Answered { answer: Answer::Wrote { .. } }).then_some((call, answer))
    });
    let accepted: Vec<(usize, usize)> = accepted.collect();
    let pairs = accepted.iter().flat_map(|one| accepted.iter().map(move |other| (*one, *other)));
    let follows = |((call, answer), (late, _)): &((usize, usize), (usize, usize))| {
        records[*answer].at < records[*late].at && fenced(*call).unwrap().0 == fenced(*late).unwrap().0
    };
    let ((before, _), (late, _)) = one_of(&pairs.filter(follows).collect::<Vec<_>>(), site)?;
    let smaller = fenced(before)?.1 - 1;
    let Event::Asked { token, .. } = &mut records[late].event else { return None };
    *token = Some(smaller);
    Some(())
}

/// What it had read was overwritten before its write.
fn value_lost(records: &mut [Record], site: usize) -> Option<()> {
    let at = place(records, site, |at| {
        let before = records[..at].iter().filter(|record| of_one_op(record, &records[at]));
        let asked = before.filter(|record| matches!(record.event, Event::Asked { token: Some(_), .. }));
        matches!(records[at].event, Event::Answered { answer: Answer::Wrote { .. } }) && asked.count() > 1
    })?;
    records[at].event = Event::Answered { answer: Answer::Wrote { previous: Some(u64::MAX) } };
    Some(())
}

fn held_after_loss(records: &mut Vec<Record>, site: usize) -> Option<()> {
    let at = place(records, site, |at| matches!(records[at].event, Event::Lost { .. }))?;
    let again = Record { at: records[at].at + 1, event: Event::Held {}, ..records[at].clone() };
    records.push(again);
    Some(())
}

/// Of a client that goes on.
fn answer_missing(records: &mut Vec<Record>, site: usize) -> Option<()> {
    let goes_on = |client| {
        let hits = |target: &Target| matches!(target, Target::Client(hit) if *hit == client);
        !records.iter().any(|record| matches!(&record.event, Event::Fault { target, .. } if hits(target)))
    };
    let refused = |record: &Record| matches!(record.event, Event::Refused { .. });
    let at = place(records, site, |at| refused(&records[at]) && goes_on(records[at].client))?;
    records.remove(at);
    Some(())
}

fn answer_repeated(records: &mut Vec<Record>, site: usize) -> Option<()> {
    let at = place(records, site, |at| matches!(records[at].event, Event::Granted { .. } | Event::Refused { .. }))?;
    let again = Record { at: records[at].at + 1, ..records[at].clone() };
    records.push(again);
    Some(())
}
