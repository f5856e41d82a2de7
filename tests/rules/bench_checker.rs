//! The benchmarks' own check: it must see when a contender was no lock, and count right when it was.

#![allow(
    dead_code,
    clippy::cast_precision_loss,
    clippy::missing_errors_doc,
    reason = "the file belongs to the benchmarks, which use all of it"
)]

#[path = "../../benches/workloads/log.rs"]
mod log;

use log::{HAND_OFFS, HoldSpan, JAIN, Keys, Log, P50, PER_SECOND, STARVED};

fn log(spans: &[[u64; 4]]) -> Log {
    Log { spans: spans.iter().copied().map(HoldSpan::from).collect(), cpu: 0 }
}

#[test]
fn two_holds_of_one_key_at_the_same_time_are_seen() {
    let overlapping = log(&[[0, 10, 20, 0], [1, 19, 30, 0]]);
    let told = overlapping.check(Keys::Shared).unwrap_err();
    assert!(told.contains("at the same time"), "{told}");
    overlapping.check(Keys::Own).unwrap();
    log(&[[0, 10, 20, 0], [0, 19, 30, 0]]).check(Keys::Own).unwrap_err();
}

#[test]
fn stints_that_follow_each_other_are_fine_in_whatever_order_they_were_noted() {
    log(&[[1, 20, 30, 6], [0, 10, 20, 5], [0, 31, 32, 9]]).check(Keys::Shared).unwrap();
    log(&[[1, 20, 30, 0], [0, 10, 20, 0]]).check(Keys::Shared).unwrap();
}

#[test]
fn a_token_that_does_not_grow_is_seen() {
    for second in [5, 4, 0] {
        let told = log(&[[0, 10, 20, 5], [1, 20, 30, second]]).check(Keys::Shared).unwrap_err();
        assert!(told.contains("no greater token"), "{told}");
    }
}

#[test]
fn only_what_went_to_another_task_counts_as_a_hand_off() {
    let second = 1_000_000_000;
    let spans = [[0, 1000, 2000, 0], [0, 3000, 4000, 0], [1, 9000, 9500, 0], [0, second + 1, second + 2, 0]];
    let sample = log(&spans).sample(Keys::Shared, 4, &(0..second));
    assert_eq!(sample.acquisitions, 4);
    assert!((sample.figures[PER_SECOND] - 3.0).abs() < 1e-9, "what is outside the window does not count");
    assert!((sample.figures[HAND_OFFS] - 1.0).abs() < 1e-9);
    assert!((sample.figures[P50] - 5.0).abs() < 0.01, "from 4000 to 9000 ns");
    assert!((sample.figures[STARVED] - 2.0).abs() < 1e-9);
}

#[test]
fn the_index_of_fairness_is_1_for_all_alike_and_1_nth_for_one_alone() {
    let jain = |spans: &[[u64; 4]]| log(spans).sample(Keys::Shared, 4, &(0..100)).figures[JAIN];
    assert!((jain(&[[0, 1, 2, 0], [1, 3, 4, 0], [2, 5, 6, 0], [3, 7, 8, 0]]) - 1.0).abs() < 1e-9);
    assert!((jain(&[[2, 1, 2, 0], [2, 3, 4, 0]]) - 0.25).abs() < 1e-9);
}
