//! What the command gets from us, and what becomes of its exit code.

use leasehold_testkit::test;
use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::support::{Place, text};

#[test]
fn the_exit_code_of_the_command_is_passed_through() {
    let place = Place::file();
    for code in [0, 1, 75, 76, 255] {
        assert_eq!(place.code(&["run", "k", "--", "sh", "-c", &format!("exit {code}")]), code);
    }
}

#[test]
fn a_command_that_a_signal_ended_gives_128_and_its_number() {
    let place = Place::file();
    for (signal, code) in [("KILL", 137), ("TERM", 143), ("SEGV", 139)] {
        assert_eq!(place.code(&["run", "k", "--", "sh", "-c", &format!("kill -{signal} $$")]), code);
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
        let output = place.run(&["run", "k", "--", &program]);
        assert_eq!(output.status.code(), Some(code), "{program}: {output:?}");
        assert!(text(&output.stderr).contains("cannot run"), "{output:?}");
        assert_eq!(place.code(&["inspect", "-e", "k"]), 1, "{program}");
    }
}

#[test]
fn the_command_has_its_own_grant_in_its_environment_and_no_other() {
    let place = Place::file();
    let print = "echo $LEASEHOLD_KEY; echo $LEASEHOLD_TOKEN; echo $LEASEHOLD_BACKEND; \
                 echo ${LEASEHOLD_EXPIRES_IN_MS-unset} ${LEASEHOLD_PASSWORD-unset}";
    let run = || {
        let mut command = place.leasehold(&["run", "ünder/lock 1", "--", "sh", "-c", print]);
        command.env("LEASEHOLD_KEY", "outer").env("LEASEHOLD_EXPIRES_IN_MS", "7").env("LEASEHOLD_PASSWORD", "secret");
        let output = text(&command.output().unwrap().stdout);
        output.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (first, second) = (run(), run());
    assert_eq!(first[0], "ünder/lock 1");
    assert_eq!(first[2], place.backend());
    assert_eq!(first[3], "unset unset", "a kernel lock has no lease, and a password is not for the command");
    let token = |lines: &[String]| lines[1].parse::<u64>().unwrap();
    assert!(token(&first) < token(&second));
}

#[test]
fn input_and_output_are_the_commands() {
    let place = Place::file();
    let mut program = place.leasehold(&["run", "k", "--", "cat"]);
    let mut program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    program.stdin.take().unwrap().write_all(b"through\0it\n").unwrap();
    let output = program.wait_with_output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"through\0it\n"[..], &b""[..]));
}

#[test]
fn options_of_the_command_are_left_to_it() {
    let place = Place::file();
    let output = place.run(&["run", "k", "printf", "%s.", "-n", "--wait", "--", "--help"]);
    assert_eq!(text(&output.stdout), "-n.--wait.--.--help.");
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
    let mut command = std::process::Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_leasehold"), "--backend", place.backend()]);
    let output = command.args(["run", "k", "--", "sh", "-c", script]).output().unwrap();
    if text(&output.stderr).contains("unshare:") {
        leasehold_testkit::shows_nothing("a namespace of processes takes the super-user");
    }
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "left 0\n"), "{output:?}");
}
