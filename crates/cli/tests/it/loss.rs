//! What becomes of the command when the lock is lost.

use leasehold_testkit::test;
use rustix::process::Signal;

use crate::support::{Place, Running};

/// Starts a command under the lock and takes the lock away as soon as the command has said that it is ready. The lease is so
/// short that the holder asks after its lock many times a second.
fn robbed(place: &Place, options: &str, script: &str) -> Running {
    let mut holder = place.leasehold(&format!("run --json --ttl 300ms {options} k -c"));
    let mut holder = Running::start(holder.arg(script));
    holder.expect_line("ready");
    assert_eq!(place.code("force-release k"), 0);
    holder
}

#[test]
fn the_command_and_what_it_started_are_ended() {
    const LEFT_BEHIND: &str = "(trap '' TERM; echo ready; while :; do sleep 0.05; done) & trap 'exit 0' TERM; wait";
    const IGNORES: &str = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    const STOPPED: &str = "echo ready; kill -STOP $$; while :; do sleep 0.05; done";
    const ENDS_WELL: &str =
        "exec 2>/dev/null; trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    for (options, script, ended, output, code) in [
        // Neither of the two ends by itself, and the pipe stays open as long as one of them is there.
        ("", "sleep 1000 & echo ready; wait", Some(Signal::TERM), "", 76),
        ("", ENDS_WELL, None, "asked\n", 76),
        ("--lost-exit-code 9", ENDS_WELL, None, "asked\n", 9),
        ("--on-lost kill", ENDS_WELL, Some(Signal::KILL), "", 76),
        ("--kill-after 300ms", IGNORES, Some(Signal::KILL), "", 76),
        ("--kill-after 300ms", LEFT_BEHIND, None, "", 76),
        ("--kill-after 1h", STOPPED, Some(Signal::TERM), "", 76),
    ] {
        let place = Place::file();
        let mut holder = robbed(&place, options, script);
        let lost = holder.event("lost");
        let action = if options == "--on-lost kill" { "kill" } else { "term" };
        assert!(lost["reason"] == "force_released" && lost["action"] == action, "{lost}");
        assert_eq!(holder.event("exited")["signal"].as_i64(), ended.map(|signal| signal.as_raw().into()), "{script}");
        assert_eq!(holder.event("released")["outcome"], "already_lost");
        holder.end_by_itself().is(code, &[]).prints(output);
    }
    // An interrupt ends the wait for what was left behind. What a shell starts in the background ignores SIGINT, so handing that on
    // would do nothing.
    let place = Place::file();
    for signal in [Signal::INT, Signal::TERM] {
        let mut holder = robbed(&place, "--kill-after 1h", LEFT_BEHIND);
        holder.event("exited");
        holder.signal(signal);
        holder.end_by_itself().is(76, &[]);
    }
}

#[test]
fn ignore_lets_the_command_finish_and_says_so() {
    let place = Place::file();
    let mut holder = robbed(&place, "--on-lost ignore", "echo ready; read end; exit 7");
    assert_eq!(holder.event("lost")["action"], "ignore");
    assert!(place.is_free("k"));
    holder.close_input();
    assert_eq!(holder.event("exited")["code"], 7);
    holder.end().is(7, &[]);
}

#[test]
fn a_loss_that_comes_to_light_at_the_release_counts() {
    let place = Place::file();
    let mut holder = place.hold_with("--ttl 1h --json", "k");
    assert_eq!(place.code("force-release k"), 0);
    holder.close_input();
    assert_eq!(holder.event("released")["outcome"], "already_lost");
    holder.end().is(76, &["lost before the command ended"]);
}

#[test]
fn max_hold_ends_the_command_and_is_announced_in_time_to_end_under_the_lock() {
    let place = Place::file();
    let mut holder = place.start("run --json --max-hold 200ms k sleep 1000");
    assert_eq!(holder.event("lost")["reason"], "max_hold");
    holder.end_by_itself().is(76, &[]);
    assert!(place.is_free("k"));

    let script = "exec 2>/dev/null; trap 'echo heard; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let mut holder = Running::start(place.leasehold("run --json --max-hold 4s --kill-after 1h k -c").arg(script));
    holder.expect_line("ready");
    let lost = holder.event("lost");
    assert!(lost["reason"] == "max_hold" && lost["action"] == "term", "{lost}");
    assert_eq!(holder.event("released")["outcome"], "released");
    // It ran to its own end.
    holder.end_by_itself().is(76, &[]).prints("heard\n");
}
