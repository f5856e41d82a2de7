//! Judges histories that are written by hand.

use std::fmt::Write as _;

use leasehold_chaos::checker::{Allowance, Limits, Rule, Terms, Verdict, check};
use leasehold_chaos::history::History;
use leasehold_testkit::test;

use crate::story::{stories, told};

const FILES: [&str; 5] = [
    include_str!("histories/exclusion.txt"),
    include_str!("histories/ends.txt"),
    include_str!("histories/registers.txt"),
    include_str!("histories/gaps.txt"),
    include_str!("histories/excuses.txt"),
];

const TERMS: Terms<'static> = Terms {
    allowances: &[
        Allowance { fault: "amnesia", rules: &[Rule::Overlap], why: "", takes_locks: false },
        Allowance { fault: "forced", rules: &[Rule::Overlap], why: "", takes_locks: true },
    ],
    limits: Limits { wait_overshoot_ms: Some(50), hand_over_ms: Some(500), stalled_ms: Some(4000) },
};

fn broken(verdict: &Verdict) -> Vec<String> {
    verdict.broken.keys().map(ToString::to_string).collect()
}

#[test]
fn of_each_story_the_good_history_passes_and_the_bad_ones_break_these_rules_and_no_others() {
    let mut wrong = Vec::new();
    for story in FILES.into_iter().flat_map(stories) {
        let mut expect = |history: &History, rules: &[String]| {
            let verdict = check(history, &TERMS);
            if broken(&verdict) != rules {
                wrong.push(format!("{}: not {rules:?}, but\n{}", story.name, verdict.explain(history)));
            }
            verdict
        };
        let verdict = expect(&story.good, &[]);
        for bad in &story.bad {
            expect(bad, &story.finds);
        }
        assert_eq!(story.finds.is_empty(), story.bad.is_empty(), "{} has bad lines and finds something", story.name);
        let figures = serde_json::to_value(verdict.figures).unwrap();
        for (name, value) in story.measures.iter().filter(|(name, value)| figures[name] != *value) {
            wrong.push(format!("{}: {name} is {} and not {value}", story.name, figures[name]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Twenty-one holders, each of whom gives the key back as `gives_back` says while another waits, who has it `after` ms later.
fn hand_overs(gives_back: &str, after: u64) -> Verdict {
    let mut story = String::from("c1 5 call k\nc1 10 granted 1\n");
    for turn in 1..22 {
        let (at, next) = (turn * 2000, turn + 1);
        let gives_back = gives_back.replace("WHO", &format!("c{turn} {at}"));
        let _ = writeln!(story, "c{next} {} call k\n{gives_back}\nc{next} {} granted {next}", at - 500, at + after);
    }
    check(&told(&(story + "c22 44000 held"), '-'), &TERMS)
}

#[test]
fn keys_that_are_free_when_their_lease_ends_and_not_when_they_are_given_back_are_found() {
    for gives_back in ["WHO releasing\nWHO released", "WHO releasing"] {
        assert!(hand_overs(gives_back, 500).passed());
        assert_eq!(broken(&hand_overs(gives_back, 501)), ["slow hand-over"], "{gives_back}");
    }
    // Nobody knows when the store learns of these.
    for gives_back in ["WHO lost", "WHO releasing\nWHO failed indeterminate", "WHO detached"] {
        assert!(hand_overs(gives_back, 990).passed(), "{gives_back}");
    }
}

#[test]
fn a_violation_is_explained_with_both_windows_and_their_lines_and_counted_where_it_is_excused() {
    let story = "c1 10 call k
                 c1 20 granted 7
                 c1 60 held
                 c2 30 call k
                 c2 50 granted 8
                 c2 70 held";
    let history = told(story, '-');
    let explained = check(&history, &TERMS).explain(&history);
    for part in [
        "overlap: \"k\" was held by client 1 (exclusive, token 7) from 0.010000 s to 0.050000 s",
        "and by client 2 (exclusive, token 8) from 0.040000 s to 0.060000 s",
        "history:2  0.010000 s  client 1, task 0, op 1: {\"kind\":\"granted\",\"token\":7,\"lease_ms\":1000}",
        "history:6  0.060000 s  client 2",
        "overlap: 1 in all",
    ] {
        assert!(explained.contains(part), "{part} is not in:\n{explained}");
    }
    let story = format!("{story}\nnemesis 40 begins amnesia server=s\nnemesis 41 ends amnesia server=s");
    let figures = check(&told(&story, '-'), &TERMS).figures;
    assert_eq!((figures.overlaps, figures.excused["overlap (amnesia)"]), (0, 1));
}
