//! A holder whose network is cut: its command is dead before the next holder's starts.

use std::fs;
use std::path::Path;

use leasehold_testkit::{Proxy, test};

use crate::support::{Place, Running, redis};

/// Long enough that a machine on which everything takes its time still ends a command in time.
const TTL: &str = "5s";

/// From none to longer than the lease.
const KILL_AFTER: [&str; 4] = ["500ms", "2s", "1h", "0"];

/// A holder behind a network that falls silent, and one who waits for its lock on another: what the two commands write
/// must not mix. One that is given time to end must hear of it before the lock is another's. That a silent store renews
/// nothing, the suite of the drivers asks of each.
#[test(deep)]
fn a_command_whose_holder_is_cut_off_is_dead_before_the_next_one_starts() {
    let (server, far) = redis("");
    let network = Proxy::start(server.port());
    let near = Place::at(network.url(&server.url()));
    let folder = tempfile::tempdir().unwrap();
    let file = |kill_after: &str| folder.path().join(kill_after);
    let start = |place: &Place, options: &str, key: &str, script: &str| {
        let mut command = place.leasehold(&format!("run {options} {key} -- sh -c"));
        Running::start(command.arg(script).arg(file(key)))
    };
    let holders = KILL_AFTER.map(|kill_after| {
        let script = "trap 'echo asked >>\"$0\"' TERM; echo ready; while :; do echo old >>\"$0\"; sleep 0.02; done";
        let options = format!("--json --ttl {TTL} --kill-after {kill_after}");
        let mut holder = start(&near, &options, kill_after, script);
        holder.expect_line("ready");
        holder
    });
    // Renewed more than once, so that nobody takes a healthy lease for one that ends.
    pause_for_two_renewals();
    let asked = |kill_after: &str| fs::read_to_string(file(kill_after)).unwrap().contains("asked");
    assert!(!KILL_AFTER.into_iter().any(asked), "a healthy lease is no reason to end a command");
    let followers = KILL_AFTER.map(|key| start(&far, "-w 60s", key, "echo new >>\"$0\"; sleep 1"));
    network.black_hole_all();
    for ((mut holder, follower), kill_after) in holders.into_iter().zip(followers).zip(KILL_AFTER) {
        assert_eq!(holder.event("lost")["reason"], "unreachable", "{kill_after}");
        holder.end_by_itself().is(76, &[]);
        follower.end().is(0, &[]);
        check(&file(kill_after), kill_after);
    }
}

fn check(file: &Path, kill_after: &str) {
    let written = fs::read_to_string(file).unwrap();
    let at = |what: &str| written.lines().position(|line| line == what);
    let new = at("new").expect("the next holder writes");
    let late = written.lines().skip(new).filter(|line| *line != "new").count();
    assert_eq!(late, 0, "of {new} lines so many came beside the next holder, with --kill-after {kill_after}");
    assert_eq!(at("asked").is_some(), kill_after != "0", "--kill-after {kill_after}");
}

#[allow(clippy::disallowed_methods, reason = "what is shown is that nothing happens meanwhile")]
fn pause_for_two_renewals() {
    std::thread::sleep(std::time::Duration::from_secs(4));
}
