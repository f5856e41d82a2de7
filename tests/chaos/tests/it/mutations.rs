//! What a simulated lock gives passes, and a mutation that matters is found, wherever it is made.

use leasehold_testkit::test;
use std::collections::BTreeMap;

use leasehold_chaos::checker::{Rule, Terms, check};
use leasehold_chaos::history::{Event, History, Mode, Record, UNKNOWN};
use proptest::prelude::*;
use proptest::sample::select;

use crate::simulator;

/// Makes a history wrong at the site that is chosen among all where it can; `None`: there is none.
type Mutation = fn(&mut Vec<Record>, usize) -> Option<()>;

const MUTATIONS: &[(Rule, Mutation)] = &[
    (Rule::Overlap, |records, site| grant_beside_a_holder(records, site)),
    (Rule::ReaderBesideWriter, |records, site| writer_beside_a_reader(records, site)),
    (Rule::DuplicateToken, |records, site| token_of_another(records, site)),
    (Rule::StaleAttach, text_attached_twice),
    (Rule::BackwardToken, |records, site| tokens_swapped(records, site)),
    (Rule::StaleWrite, |records, site| smaller_token_accepted(records, site)),
    (Rule::LostUpdate, |records, site| value_lost(records, site)),
    (Rule::NotLinearizable, |records, site| value_never_written(records, site)),
    (Rule::HeldAfterEnd, held_after_loss),
    (Rule::Unresolved, answer_missing),
    (Rule::Unresolved, key_lost),
    (Rule::Malformed, answer_repeated),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_correct_lock_gives_passes(seed: u64, ops in 1_usize..150, keys in 1_usize..4) {
        let history = History::of(simulator::history(seed, ops, keys));
        let verdict = check(&history, &Terms::default());
        let broken: Vec<_> = verdict.broken.keys().filter(|rule| **rule != Rule::UnfencedLoss).collect();
        prop_assert!(broken.is_empty(), "{broken:?}\n{}", verdict.explain(&history));
        prop_assert_eq!(verdict.figures.undecided_registers, 0);
    }

    #[test]
    fn a_mutation_that_matters_is_found(seed: u64, site: usize, ops in 40_usize..150, mutation in select(MUTATIONS)) {
        let (rule, mutate) = mutation;
        let mut records = simulator::history(seed, ops, 2);
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
        let made = (0..20).filter(|seed| mutate(&mut simulator::history(*seed, 100, 2), 1).is_some()).count();
        assert!(made >= 10, "{rule}: only {made} of 20 histories have a site for it");
    }
}

#[test]
fn a_simulated_run_has_all_that_the_rules_speak_of() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for record in simulator::history(1, 4000, 3) {
        let event = serde_json::to_value(&record.event).unwrap();
        *seen.entry(event["kind"].as_str().unwrap().to_owned()).or_default() += 1;
        if event["attach"] == true {
            *seen.entry("attached".to_owned()).or_default() += 1;
        }
    }
    for kind in ["called", "granted", "refused", "held", "release_called", "released", "release_failed", "lost"] {
        assert!(seen.get(kind).is_some_and(|times| *times > 5), "{kind}: {seen:?}");
    }
    for kind in
        ["detached", "attached", "write_called", "write_accepted", "write_refused", "write_unknown", "read", "fault"]
    {
        assert!(seen.get(kind).is_some_and(|times| *times > 5), "{kind}: {seen:?}");
    }
}

/// An op that was granted its lock.
#[derive(Clone, Debug)]
struct Holding {
    key: String,
    mode: Mode,
    plain: bool,
    client: u32,
    op: u64,
    token: u64,
    called: usize,
    granted: usize,
    held: usize,
}

fn granted(records: &[Record]) -> Vec<Holding> {
    let mut ops: BTreeMap<(u32, u64), Holding> = BTreeMap::new();
    let mut calls = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        let of = (record.client, record.op);
        match &record.event {
            Event::Called { key, mode, session, attach, .. } => {
                calls.insert(of, (at, key.clone(), *mode, session.is_none() && !attach));
            }
            Event::Granted { token, .. } => {
                let (called, key, mode, plain) = calls[&of].clone();
                let (client, op) = of;
                ops.insert(of, Holding { key, mode, plain, client, op, token: *token, called, granted: at, held: at });
            }
            Event::Held {} => ops.get_mut(&of).unwrap().held = at,
            _ => {}
        }
    }
    ops.into_values().collect()
}

/// All pairs of two granted ops of one key.
fn pairs(records: &[Record], fit: impl Fn(&Holding, &Holding) -> bool) -> Vec<(Holding, Holding)> {
    let ops = granted(records);
    let pairs = ops.iter().flat_map(|one| ops.iter().map(move |other| (one, other)));
    let pairs = pairs.filter(|(one, other)| one.key == other.key && one.op != other.op && fit(one, other));
    pairs.map(|(one, other)| (one.clone(), other.clone())).collect()
}

fn one_of<T: Clone>(sites: &[T], site: usize) -> Option<T> {
    sites.get(site % sites.len().max(1)).cloned()
}

/// The places of all records that fit.
fn places(records: &[Record], fit: impl Fn(&Event) -> bool) -> Vec<usize> {
    (0..records.len()).filter(|at| fit(&records[*at].event)).collect()
}

fn set_token(records: &mut [Record], at: usize, new: u64) {
    let Event::Granted { token, .. } = &mut records[at].event else { panic!("this is no grant") };
    *token = new;
}

/// The second is granted as soon as the first, which goes on.
fn granted_together(records: &mut [Record], site: usize, fit: impl Fn(&Holding, &Holding) -> bool) -> Option<()> {
    let at = |place: usize| records[place].at;
    let sites = pairs(records, |one, other| {
        let windows = at(one.held) > at(one.granted) + 2 && at(other.held) > at(other.granted);
        windows && at(one.granted) < at(other.granted) && one.plain && other.plain && fit(one, other)
    });
    let (one, other) = one_of(&sites, site)?;
    let moment = at(one.granted) + 1;
    records[other.called].at = at(other.called).min(moment);
    records[other.granted].at = moment;
    Some(())
}

fn grant_beside_a_holder(records: &mut [Record], site: usize) -> Option<()> {
    granted_together(records, site, |one, other| [one.mode, other.mode] == [Mode::Exclusive; 2])
}

fn writer_beside_a_reader(records: &mut [Record], site: usize) -> Option<()> {
    granted_together(records, site, |one, other| one.mode != other.mode)
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
    let attached = |at: &usize| {
        let calls = |record: &Record| matches!(record.event, Event::Called { attach: true, .. });
        let of = &records[*at];
        records.iter().any(|other| (other.client, other.op) == (of.client, of.op) && calls(other))
    };
    let sites: Vec<usize> =
        places(records, |event| matches!(event, Event::Granted { .. })).into_iter().filter(attached).collect();
    let at = one_of(&sites, site)?;
    let (client, op) = (records[at].client, records[at].op);
    let again = |record: &Record| Record { op: u64::MAX, task: u32::MAX, ..record.clone() };
    let of_op = records.iter().filter(|record| (record.client, record.op) == (client, op));
    let begin = of_op.filter(|record| matches!(record.event, Event::Called { .. } | Event::Granted { .. }));
    let twice: Vec<Record> = begin.map(again).collect();
    records.extend(twice);
    Some(())
}

fn smaller_token_accepted(records: &mut [Record], site: usize) -> Option<()> {
    let writes = places(records, |event| matches!(event, Event::WriteCalled { token: Some(_), .. }));
    let of = |at: usize| match &records[at].event {
        Event::WriteCalled { register, token: Some(token), .. } => Some((register.clone(), *token)),
        _ => None,
    };
    // The answer of each that was accepted.
    let accepted: Vec<(usize, usize)> = writes
        .into_iter()
        .filter_map(|call| {
            let same = |record: &Record| (record.client, record.op) == (records[call].client, records[call].op);
            let answer = call + 1 + records[call + 1..].iter().position(same)?;
            matches!(records[answer].event, Event::WriteAccepted { .. }).then_some((call, answer))
        })
        .collect();
    let pairs = accepted.iter().flat_map(|one| accepted.iter().map(move |other| (*one, *other)));
    let follows = |((call, answer), (late, _)): &((usize, usize), (usize, usize))| {
        records[*answer].at < records[*late].at && of(*call).unwrap().0 == of(*late).unwrap().0
    };
    let ((before, _), (late, _)) = one_of(&pairs.filter(follows).collect::<Vec<_>>(), site)?;
    let smaller = of(before)?.1 - 1;
    let Event::WriteCalled { token, .. } = &mut records[late].event else { return None };
    *token = Some(smaller);
    Some(())
}

/// What it had read was overwritten before its write.
fn value_lost(records: &mut [Record], site: usize) -> Option<()> {
    let fenced = |at: &usize| {
        let same = |record: &&Record| (record.client, record.op) == (records[*at].client, records[*at].op);
        let mut before = records[..*at].iter().rev().filter(same);
        matches!(before.next().map(|record| &record.event), Some(Event::WriteCalled { token: Some(_), .. }))
    };
    let sites = places(records, |event| matches!(event, Event::WriteAccepted { .. }));
    let at = one_of(&sites.into_iter().filter(fenced).collect::<Vec<_>>(), site)?;
    records[at].event = Event::WriteAccepted { previous: Some(u64::MAX) };
    Some(())
}

fn value_never_written(records: &mut [Record], site: usize) -> Option<()> {
    let at = one_of(&places(records, |event| matches!(event, Event::Read { .. })), site)?;
    let Event::Read { value, .. } = &mut records[at].event else { return None };
    *value = Some(u64::MAX);
    Some(())
}

fn held_after_loss(records: &mut Vec<Record>, site: usize) -> Option<()> {
    let at = one_of(&places(records, |event| matches!(event, Event::Lost { .. })), site)?;
    let again = Record { at: records[at].at + 1, event: Event::Held {}, ..records[at].clone() };
    records.push(again);
    Some(())
}

/// Also of a client that goes on.
fn answer_missing(records: &mut Vec<Record>, site: usize) -> Option<()> {
    let at = one_of(&places(records, |event| matches!(event, Event::Refused { .. })), site)?;
    records.remove(at);
    Some(())
}

/// Nobody is granted a key of which an outcome is unknown.
fn key_lost(records: &mut Vec<Record>, site: usize) -> Option<()> {
    let unknown = |event: &Event| match event {
        Event::ReleaseFailed { error } | Event::Refused { error } => error == UNKNOWN,
        _ => false,
    };
    let at = one_of(&places(records, unknown), site)?;
    let moment = records[at].at;
    let key = records.iter().find_map(|record| match &record.event {
        Event::Called { key, .. } if (record.client, record.op) == (records[at].client, records[at].op) => Some(key),
        _ => None,
    })?;
    let later =
        granted(records).into_iter().filter(|granted| granted.key == *key && records[granted.granted].at > moment);
    let gone: Vec<(u32, u64)> = later.map(|granted| (granted.client, granted.op)).collect();
    records.retain(|record| !gone.contains(&(record.client, record.op)));
    Some(())
}

fn answer_repeated(records: &mut Vec<Record>, site: usize) -> Option<()> {
    let at = one_of(&places(records, |event| matches!(event, Event::Granted { .. } | Event::Refused { .. })), site)?;
    let again = Record { at: records[at].at + 1, ..records[at].clone() };
    records.push(again);
    Some(())
}

#[test]
fn a_level_that_was_counted_late_keeps_a_lease_that_was_given_back() {
    let history = History::of(simulator::history(10_735_289_350_010_704_311, 79, 1));
    let verdict = check(&history, &Terms::default());
    assert!(verdict.passed(), "{}", verdict.explain(&history));
}
