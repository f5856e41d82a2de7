//! Signals are the command's, as long as there is one.

use leasehold_testkit::test;
use rustix::process::Signal;

use crate::support::{Place, Running, redis};

#[test]
fn signals_are_forwarded_to_the_command_and_the_lock_is_held_until_it_ends() {
    let place = Place::file();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2] {
        let name = signal.as_raw();
        let script =
            format!("trap 'echo trapped; read end; exit {name}' {name}; echo ready; while :; do sleep 0.05; done");
        let mut program = Running::start(place.leasehold("run k -c").arg(script));
        program.expect_line("ready");
        program.signal(signal);
        program.expect_line("trapped");
        assert!(!place.is_free("k"));
        program.end().is(name, &[]);
        assert!(place.is_free("k"));
    }
}

#[test]
fn a_signal_while_it_waits_ends_it_and_leaves_nothing_behind() {
    let (_server, on_redis) = redis("");
    for place in [Place::file(), on_redis] {
        let holder = place.hold("k");
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::USR1, 138)] {
            let mut waiter = place.start("run --json k echo ran");
            waiter.event("waiting");
            waiter.signal(signal);
            assert_eq!(waiter.event("error")["kind"], "interrupted");
            waiter.end_by_itself().is(code, &[]).prints("");
        }
        assert_eq!(place.inspect("k")["holders"].as_array().unwrap().len(), 1);
        holder.end().is(0, &[]);
        assert_eq!(place.code("inspect -e k"), 1);
    }
}

/// `nohup` and the shell's `&` have a program ignore signals; it must not unlearn that on the way to the command.
#[cfg(target_os = "linux")]
#[test]
fn signals_that_are_ignored_stay_ignored() {
    let place = Place::file();
    let script = "trap '' HUP QUIT; exec \"$0\" run k -c 'echo $$; read end; exit 0'";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_leasehold")]).env("LEASEHOLD_BACKEND", place.backend());
    let mut program = Running::start(&mut shell);
    let ignored = crate::support::ignored(&program.line());
    for signal in [Signal::HUP, Signal::QUIT] {
        assert_ne!(ignored & (1 << (signal.as_raw() - 1)), 0, "{signal:?}");
        program.signal(signal);
    }
    assert!(!place.is_free("k"));
    program.end().is(0, &[]);
}
