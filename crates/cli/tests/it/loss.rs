//! What becomes of the command when the lock is lost.

use leasehold_testkit::test;
use rustix::process::Signal;

use crate::support::{Place, Running};

/// A lease so short that a holder asks after its lock many times a second.
const SHORT: [&str; 2] = ["--ttl", "300ms"];

/// Starts a command under the lock and takes the lock away as soon as the command has said that it is ready.
fn robbed(place: &Place, options: &[&str], script: &str) -> Running {
    let args = [&["run", "--json"][..], &SHORT, options, &["k", "--", "sh", "-c", script]].concat();
    let mut holder = Running::start(&mut place.leasehold(&args));
    holder.expect_line("ready");
    assert_eq!(place.code(&["force-release", "k"]), 0);
    holder
}

#[test]
fn the_command_and_what_it_started_are_terminated() {
    let place = Place::file();
    // Neither of the two ends by itself, and the pipe stays open as long as one of them is there.
    let mut holder = robbed(&place, &[], "sleep 1000 & echo ready; wait");
    let lost = holder.event("lost");
    assert_eq!((&lost["reason"], &lost["action"]), (&"force_released".into(), &"term".into()));
    assert_eq!(holder.event("exited")["signal"], Signal::TERM.as_raw());
    assert_eq!(holder.event("released")["outcome"], "already_lost");
    assert_eq!(holder.end_by_itself().code, Some(76));
}

#[test]
fn a_command_that_ends_well_when_it_is_terminated_is_a_loss_all_the_same() {
    let place = Place::file();
    let script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    assert_eq!(robbed(&place, &[], script).end_by_itself().code, Some(76));
    assert_eq!(robbed(&place, &["--lost-exit-code", "9"], script).end_by_itself().code, Some(9));
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_after_kill_after() {
    let place = Place::file();
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let mut holder = robbed(&place, &["--kill-after", "300ms"], script);
    assert_eq!(holder.event("exited")["signal"], Signal::KILL.as_raw());
    assert_eq!(holder.end_by_itself().code, Some(76));
}

#[test]
fn processes_that_the_command_left_behind_are_killed_after_kill_after_too() {
    let place = Place::file();
    let script = "(trap '' TERM; echo ready; while :; do sleep 0.05; done) & trap 'exit 0' TERM; wait";
    assert_eq!(robbed(&place, &["--kill-after", "300ms"], script).end_by_itself().code, Some(76));
}

/// What a shell starts in the background ignores SIGINT, so handing that on would do nothing.
#[test]
fn an_interrupt_ends_the_wait_for_what_the_command_left_behind() {
    let place = Place::file();
    let script = "(trap '' TERM; echo ready; while :; do sleep 0.05; done) & trap 'exit 0' TERM; wait";
    for signal in [Signal::INT, Signal::TERM] {
        let mut holder = robbed(&place, &["--kill-after", "1h"], script);
        holder.event("exited");
        holder.signal(signal);
        assert_eq!(holder.end_by_itself().code, Some(76), "{signal:?}");
    }
}

#[test]
fn a_stopped_command_is_terminated_too() {
    let place = Place::file();
    let script = "echo ready; kill -STOP $$; while :; do sleep 0.05; done";
    let mut holder = robbed(&place, &["--kill-after", "1h"], script);
    assert_eq!(holder.event("exited")["signal"], Signal::TERM.as_raw());
    assert_eq!(holder.end_by_itself().code, Some(76));
}

#[test]
fn on_lost_kill_sends_no_sigterm() {
    let place = Place::file();
    let script = "trap 'echo politely; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let mut holder = robbed(&place, &["--on-lost", "kill"], script);
    assert_eq!(holder.event("exited")["signal"], Signal::KILL.as_raw());
    let ended = holder.end_by_itself();
    assert_eq!((ended.code, ended.output.as_str()), (Some(76), ""));
}

#[test]
fn ignore_lets_the_command_finish_and_says_so() {
    let place = Place::file();
    let mut holder = robbed(&place, &["--on-lost", "ignore"], "echo ready; read end; exit 7");
    assert_eq!(holder.event("lost")["action"], "ignore");
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 0);
    holder.close_input();
    assert_eq!(holder.event("exited")["code"], 7);
    assert_eq!(holder.end().code, Some(7));
}

#[test]
fn a_loss_that_comes_to_light_at_the_release_counts() {
    let place = Place::file();
    let args = ["run", "--ttl", "1h", "--json", "k", "--", "sh", "-c", "echo ready; read end"];
    let mut holder = Running::start(&mut place.leasehold(&args));
    holder.expect_line("ready");
    assert_eq!(place.code(&["force-release", "k"]), 0);
    holder.close_input();
    assert_eq!(holder.event("released")["outcome"], "already_lost");
    let ended = holder.end();
    assert_eq!(ended.code, Some(76));
    assert!(ended.errors.contains("lost before the command ended"), "{ended:?}");
}

#[test]
fn max_hold_ends_the_command() {
    let place = Place::file();
    let args = ["run", "--json", "--max-hold", "200ms", "k", "--", "sleep", "1000"];
    let mut holder = Running::start(&mut place.leasehold(&args));
    assert_eq!(holder.event("lost")["reason"], "max_hold");
    assert_eq!(holder.end_by_itself().code, Some(76));
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 0);
}

#[test]
fn max_hold_is_announced_to_the_command_in_time_to_end_under_the_lock() {
    let place = Place::file();
    let script = "exec 2>/dev/null; trap 'echo heard; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let args = ["run", "--json", "--max-hold", "4s", "--kill-after", "1h", "k", "--", "sh", "-c", script];
    let mut holder = Running::start(&mut place.leasehold(&args));
    holder.expect_line("ready");
    let lost = holder.event("lost");
    assert_eq!((&lost["reason"], &lost["action"]), (&"max_hold".into(), &"term".into()));
    assert_eq!(holder.event("released")["outcome"], "released");
    let ended = holder.end_by_itself();
    assert_eq!((ended.code, ended.output.as_str()), (Some(76), "heard\n"), "it did not run to its own end");
}
