//! What a fault excuses, how a violation is explained, and lines that contradict each other.

use leasehold_chaos::checker::{Allowance, Rule, Terms, check};
use leasehold_testkit::test;

use crate::judge::{STRICT, judged};
use crate::story::good;

#[test]
fn lines_that_contradict_each_other_are_found() {
    for wrong in [
        "c1 30 granted 8",
        "c1 30 call k\nc1 40 held\nc1 50 refused busy",
        "c1 30 held\nc2 30 held",
        "c1 30 released",
        "c1 30 releasing\nc1 40 held",
        "c1 30 wrote none",
        "c1 30 write r 1\nc1 40 saw none",
        "c1 30 write r 1\nc1 40 dark\nc1 50 wrote none",
        "nemesis 30 ends sigstop c1",
        "nemesis 30 call k",
        "c1 30 begins sigstop c1",
        "c1 30 releasing\nc1 40 released\nc1 50 released",
    ] {
        let story = format!("c1 10 call k\nc1 20 granted 7\n{wrong}");
        assert_eq!(judged(&good(&story)).broken.keys().collect::<Vec<_>>(), [&Rule::Malformed], "{story}");
    }
}

#[test]
fn a_fault_excuses_what_it_can_have_caused_and_nothing_else() {
    const ALLOWANCES: &[Allowance] = &[
        Allowance { backends: &["one"], fault: "amnesia", rules: &[Rule::Overlap], why: "README" },
        Allowance { backends: &[], fault: "forced", rules: &[Rule::Overlap], why: "README" },
    ];
    let overlap = "c1 100 call k
                   c1 120 granted 7
                   c1 160 held
                   c2 130 call k
                   c2 150 granted 8
                   c2 170 held
                   nemesis FROM begins FAULT
                   nemesis TO ends FAULT PROVED";
    let excused = |backend: &str, fault: &str, [from, to]: [&str; 2], proved: &str| {
        let story = overlap.replace("FAULT", fault).replace("FROM", from).replace("TO", to).replace("PROVED", proved);
        let verdict = check(&good(&story), &Terms { backend, allowances: ALLOWANCES, limits: STRICT });
        let violation = &verdict.violations[0];
        assert_eq!((verdict.violations.len(), violation.rule), (1, Rule::Overlap));
        assert_eq!(verdict.passed(), violation.excused_by.is_some());
        assert_eq!(verdict.figures.overlaps + verdict.figures.excused.values().sum::<u64>(), 1);
        verdict.passed()
    };
    assert!(excused("one", "amnesia server=s", ["50", "110"], ""));
    assert!(excused("one", "amnesia server=s", ["140", "900"], ""));
    assert!(!excused("one", "amnesia server=s", ["50", "90"], ""), "it was over before");
    assert!(!excused("one", "amnesia server=s", ["151", "152"], ""), "it came after");
    assert!(!excused("two", "amnesia server=s", ["140", "900"], ""), "another backend");
    assert!(!excused("one", "silence server=s", ["140", "900"], ""), "another fault");
    assert!(!excused("one", "amnesia server=s", ["140", "900"], "proved=0"), "it had no effect");
    assert!(!excused("one", "amnesia c3", ["140", "900"], ""), "another client");
    assert!(excused("two", "forced key=k", ["140", "900"], ""));
    assert!(!excused("two", "forced key=other", ["140", "900"], ""));
}

#[test]
fn an_excuse_ends_a_lease_after_its_fault_and_begins_with_the_grant() {
    const ALLOWANCES: &[Allowance] =
        &[Allowance { backends: &[], fault: "amnesia", rules: &[Rule::Overlap], why: "README" }];
    let passed = |[from, to]: [u64; 2]| {
        // The first one waits for long, and its lease is 1,000 ms.
        let story = format!(
            "c1 10 call k wait=9000\nc1 3000 granted 7\nc1 9000 held\nc2 4000 call k\nc2 6000 granted 8\nc2 9000 held\n\
             nemesis {from} begins amnesia server=s\nnemesis {to} ends amnesia server=s"
        );
        check(&good(&story), &Terms { allowances: ALLOWANCES, ..Terms::default() }).passed()
    };
    assert!(passed([5000, 5100]) && passed([2500, 5000]), "it may be the cause");
    assert!(!passed([4990, 4999]), "the first one had to notice in the lease after it");
    assert!(!passed([20, 1999]), "it was over when the first lease began");
}

#[test]
fn an_overlap_that_no_fault_explains_is_not_hidden_by_one_that_a_fault_explains() {
    const ALLOWANCES: &[Allowance] =
        &[Allowance { backends: &[], fault: "amnesia", rules: &[Rule::Overlap], why: "README" }];
    let story = "c1 10 call k
                 c1 20 granted 1
                 nemesis 30 begins amnesia server=s
                 nemesis 40 ends amnesia server=s
                 c2 50 call k
                 c2 60 granted 2
                 c3 60 call k
                 c3 70 granted 3
                 c3 80 held
                 c2 90 held
                 c1 99 held";
    let verdict = check(&good(story), &Terms { allowances: ALLOWANCES, ..Terms::default() });
    assert_eq!((verdict.figures.overlaps, verdict.figures.excused["overlap (amnesia)"]), (1, 1));
}

#[test]
fn a_violation_is_explained_with_both_windows_and_their_lines() {
    let story = "c1 10 call k
                 c1 20 granted 7
                 c1 60 held
                 c2 30 call k
                 c2 50 granted 8
                 c2 70 held";
    let history = good(story);
    let told = judged(&history).explain(&history);
    for part in [
        "overlap: \"k\" was held by client 1 (exclusive, token 7) from 0.010000 s to 0.050000 s",
        "and by client 2 (exclusive, token 8) from 0.040000 s to 0.060000 s",
        "history:2  0.010000 s  client 1, task 0, op 1: {\"kind\":\"granted\",\"token\":7,\"lease_ms\":1000}",
        "history:6  0.060000 s  client 2",
        "overlap: 1 in all",
    ] {
        assert!(told.contains(part), "{part} is not in:\n{told}");
    }
}
