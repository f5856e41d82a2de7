//! Signals are the command's, as long as there is one.

use leasehold_testkit::test;
use rustix::process::Signal;

use crate::support::{Place, Running, text};

#[test]
fn signals_are_forwarded_to_the_command() {
    let place = Place::file();
    let signals =
        [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2].into_iter().zip(40..);
    for (signal, code) in signals {
        let name = signal.as_raw();
        let script = format!("trap 'exit {code}' {name}; echo ready; while :; do sleep 0.05; done");
        let mut program = Running::start(&mut place.leasehold(&["run", "k", "--", "sh", "-c", &script]));
        program.expect_line("ready");
        program.signal(signal);
        assert_eq!(program.end_by_itself().code, Some(code), "{signal:?}");
    }
}

#[test]
fn the_lock_is_held_until_the_command_has_ended() {
    let place = Place::file();
    let script = "trap 'echo trapped; read end; exit 4' TERM; echo ready; while :; do sleep 0.05; done";
    let mut program = Running::start(&mut place.leasehold(&["run", "k", "--", "sh", "-c", script]));
    program.expect_line("ready");
    program.signal(Signal::TERM);
    program.expect_line("trapped");
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 75);
    assert_eq!(program.end().code, Some(4));
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 0);
}

#[test]
fn a_signal_while_it_waits_ends_it_and_leaves_nothing_behind() {
    let place = Place::file();
    let mut holder = place.hold("k");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::USR1, 138)] {
        let mut waiter = Running::start(&mut place.leasehold(&["run", "--json", "k", "--", "echo", "ran"]));
        waiter.event("waiting");
        waiter.signal(signal);
        assert_eq!(waiter.event("error")["kind"], "interrupted");
        let ended = waiter.end_by_itself();
        assert_eq!((ended.code, ended.output.as_str()), (Some(code), ""), "{signal:?}");
    }
    let seen = text(&place.run(&["inspect", "--json", "k"]).stdout);
    assert_eq!(seen.matches("\"mode\"").count(), 1, "{seen}");
    holder.close_input();
    place.wait_until_free("k");
}

/// `nohup` and the shell's `&` have a program ignore signals; it must not unlearn that on the way to the command.
#[cfg(target_os = "linux")]
#[test]
fn signals_that_are_ignored_stay_ignored() {
    let place = Place::file();
    let script = format!(
        "trap '' HUP QUIT; exec '{}' run k -- sh -c 'echo ready; grep SigIgn /proc/self/status; read end; exit 0'",
        env!("CARGO_BIN_EXE_leasehold")
    );
    let mut shell = std::process::Command::new("sh");
    let mut program = Running::start(shell.args(["-c", &script]).env("LEASEHOLD_BACKEND", place.backend()));
    program.expect_line("ready");
    let ignored = program.line();
    let ignored = u64::from_str_radix(ignored.trim_start_matches("SigIgn:").trim(), 16).unwrap();
    for signal in [Signal::HUP, Signal::QUIT] {
        assert_ne!(ignored & (1 << (signal.as_raw() - 1)), 0, "{signal:?}");
        program.signal(signal);
    }
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 75);
    assert_eq!(program.end().code, Some(0));
}

/// `nohup cargo test`, and `cargo test &` in a script.
#[cfg(target_os = "linux")]
#[test]
fn these_tests_pass_although_their_parent_ignores_signals() {
    let script = "trap '' HUP INT QUIT; exec \"$0\" \"$@\"";
    for test in ["signals::signals_are_forwarded_to_the_command", "signals::a_signal_while_it_waits"] {
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-c", script]).arg(std::env::current_exe().unwrap()).arg(test).output().unwrap();
        let (told, failure) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && told.contains("1 passed"), "{told}{failure}");
    }
}
