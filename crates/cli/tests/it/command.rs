//! What the command gets from us, what becomes of its exit code, and the events of `--json`.

use std::fs;
use std::process::Command;

use leasehold_testkit::{shows_nothing, test};
use serde_json::Value;

use crate::support::{Place, ended, leasehold};

#[test]
fn the_exit_code_of_the_command_is_passed_through() {
    let place = Place::file();
    for code in [0, 1, 75, 76, 255] {
        assert_eq!(place.code(&format!("run k -c 'exit {code}'")), code);
    }
    for (signal, code) in [("KILL", 137), ("TERM", 143), ("SEGV", 139)] {
        assert_eq!(place.code(&format!("run k -c 'kill -{signal} $$'")), code);
    }
}

#[test]
fn a_command_that_cannot_run_gives_127_or_126_and_frees_the_key() {
    let place = Place::file();
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    fs::write(&plain, "hello").unwrap();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    for (program, code) in [
        ("no-such-command-anywhere".to_owned(), 127),
        (path(&dir.path().join("missing")), 127),
        (path(&plain), 126),
        (path(dir.path()), 126),
    ] {
        place.run(&["run", "k", "--", &program]).is(code, &["cannot run"]);
        assert_eq!(place.code("inspect -e k"), 1, "{program}");
    }
}

#[test]
fn the_command_has_its_own_grant_in_its_environment_and_no_other() {
    let place = Place::file();
    let print = "echo $LEASEHOLD_KEY; echo $LEASEHOLD_TOKEN; echo $LEASEHOLD_BACKEND; \
                 echo ${LEASEHOLD_EXPIRES_IN_MS-unset} ${LEASEHOLD_PASSWORD-unset}";
    let token = || {
        let mut command = place.leasehold(&["run", "ünder/lock 1", "-c", print]);
        command.env("LEASEHOLD_KEY", "outer").env("LEASEHOLD_EXPIRES_IN_MS", "7").env("LEASEHOLD_PASSWORD", "c4n4ry");
        let output = ended(&mut command).output;
        let [key, token, backend, rest] = output.lines().collect::<Vec<_>>()[..] else { panic!("{output}") };
        // A kernel lock has no lease, and a password is not for the command.
        assert_eq!((key, backend, rest), ("ünder/lock 1", place.backend(), "unset unset"));
        token.parse::<u64>().unwrap()
    };
    assert!(token() < token());
}

#[test]
fn input_output_and_options_are_the_commands() {
    let place = Place::file();
    let mut program = place.start("run k cat");
    program.type_in(b"through\0it\n");
    let ended = program.end();
    assert_eq!(ended.is(0, &[]).prints("through\0it\n").errors, "");
    place.run("run k printf %s. -n --wait -- --help").is(0, &[]).prints("-n.--wait.--.--help.");
}

/// As the first process of a container, which is the parent of what has lost its own.
#[cfg(target_os = "linux")]
#[test]
fn what_the_command_leaves_behind_in_a_container_does_not_stay_as_a_zombie() {
    let place = Place::file();
    // A shell whose child outlives it, and then a look at the state of each process: Z is one that nobody has waited for.
    let script = "(sh -c 'sleep 0.2 & exec true' &); sleep 0.1; \
                  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 0.1; \
                  left=$(cat /proc/[0-9]*/stat | grep -c '(sleep) [SRZ] 1 '); [ $left = 0 ] && break; done; echo left $left";
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_leasehold"), "--backend", place.backend()]);
    let looked = ended(command.args(["run", "k", "-c", script]));
    if looked.errors.contains("unshare:") {
        shows_nothing("a namespace of processes takes the super-user");
    }
    looked.is(0, &[]).prints("left 0\n");
}

#[test]
fn a_run_prints_its_events_in_order() {
    let place = Place::file();
    let ended = place.run("run --json k -c 'echo out; exit 3'");
    ended.is(3, &[]).prints("out\n");
    let events: Vec<Value> = ended.errors.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let times: Vec<_> = events.iter().map(|event| event["time_ms"].as_u64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] > 1_700_000_000_000, "milliseconds since 1970: {times:?}");
    let [acquired, started, exited, released] = &events[..] else { panic!("{events:?}") };
    assert!(acquired["event"] == "acquired" && acquired["key"] == "k", "{acquired}");
    assert!(acquired["backend"] == place.backend() && acquired["mode"] == "exclusive", "{acquired}");
    assert!(acquired["token"].as_u64().unwrap() > 0 && acquired["waited_ms"].is_u64(), "{acquired}");
    assert!(acquired["expires_in_ms"].is_null(), "{acquired}");
    assert!(started["event"] == "started" && started["pid"].as_u64().unwrap() > 0, "{started}");
    assert!(exited["event"] == "exited" && exited["code"] == 3 && exited["signal"].is_null(), "{exited}");
    assert!(released["event"] == "released" && released["outcome"] == "released", "{released}");
    assert!(released["reason"].is_null() && released["held_ms"].is_u64(), "{released}");
}

#[test]
fn a_failure_is_one_event_with_its_exit_code() {
    let place = Place::file();
    let _holder = place.hold("k");
    for (ended, kind, code) in [
        (place.run("run -n -E 9 --json k true"), "busy", 9),
        (ended(&mut leasehold("--backend nowhere:// run --json k true")), "usage", 64),
        (place.run("run --json free no-such-command"), "command", 127),
    ] {
        let last: Value = serde_json::from_str(ended.errors.lines().last().unwrap()).unwrap();
        assert!(last["event"] == "error" && last["kind"] == kind && last["exit_code"] == code, "{ended:?}");
        assert!(kind == "command" || ended.errors.lines().count() == 1, "{ended:?}");
    }
}
