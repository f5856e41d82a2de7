//! Who holds what, for people and for programs.

use leasehold_testkit::test;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Place, leasehold, text};

#[test]
fn inspect_tells_who_holds_a_key_and_what_for() {
    let place = Place::file();
    let free = place.run(&["inspect", "k"]);
    assert_eq!(
        (free.status.code(), text(&free.stdout).as_str()),
        (Some(0), format!("k is free in {}\n", place.backend()).as_str())
    );
    assert_eq!(place.code(&["inspect", "--exit-code", "k"]), 1);
    let holder = place.hold_with(&["--reason", "nightly report", "--label", "ada"], "k");
    let seen = place.run(&["inspect", "k"]);
    assert_eq!(seen.status.code(), Some(0));
    let table = text(&seen.stdout);
    for part in ["k ", "exclusive", "ada", "nightly report"] {
        assert!(table.contains(part), "{part} is not in {table}");
    }
    assert_eq!(place.code(&["inspect", "--exit-code", "k"]), 0);
    let seen: Value = serde_json::from_slice(&place.run(&["inspect", "--json", "k"]).stdout).unwrap();
    assert_eq!((&seen["key"], &seen["held"]), (&json!("k"), &json!(true)));
    assert_eq!((&seen["backend"], &seen["waiters"]), (&json!(place.backend()), &Value::Null));
    assert_eq!(
        (&seen["holders"][0]["label"], &seen["holders"][0]["reason"]),
        (&json!("ada"), &json!("nightly report"))
    );
    assert!(seen["holders"][0]["token"].as_u64().unwrap() > 0);
    drop(holder);
}

#[test]
fn who_holds_it_is_user_host_and_process_unless_told_otherwise() {
    let place = Place::file();
    let holder = place.hold("k");
    let seen: Value = serde_json::from_slice(&place.run(&["inspect", "--json", "k"]).stdout).unwrap();
    let label = seen["holders"][0]["label"].as_str().unwrap();
    assert!(label.contains('@') && label.contains(" pid "), "{label}");
    drop(holder);
}

#[test]
fn list_shows_the_held_keys_with_a_prefix_in_order() {
    let place = Place::file();
    let empty = place.run(&["list"]);
    assert_eq!(
        (empty.status.code(), text(&empty.stdout).as_str()),
        (Some(0), format!("nothing is held in {}\n", place.backend()).as_str())
    );
    let keys = ["job/b", "job/a", "other\n\u{1b}[2J"];
    let holders: Vec<_> = keys.iter().map(|key| place.hold(key)).collect();
    let lines = |args: &[&str]| {
        let output = text(&place.run(args).stdout);
        output.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let keys = |args: &[&str]| {
        let fields = lines(args).into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        fields.map(|fields| fields["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&["list", "--json"]), ["job/a", "job/b", "other\n\u{1b}[2J"]);
    assert_eq!(keys(&["list", "--json", "job/"]), ["job/a", "job/b"]);
    assert_eq!(keys(&["list", "--json", "nothing"]), [""; 0]);
    let table = lines(&["list"]);
    assert_eq!(table.len(), 5, "{table:?}");
    assert_eq!(table[4], format!("in {}", place.backend()));
    assert!(table[3].starts_with(r#""other\n\u{1b}[2J""#), "a key cannot play with the terminal: {table:?}");
    drop(holders);
}

#[test]
fn force_release_says_whom_it_took_it_from() {
    let place = Place::file();
    let free = place.run(&["force-release", "k"]);
    assert_eq!(
        (free.status.code(), text(&free.stdout).as_str()),
        (Some(1), format!("k was free in {}\n", place.backend()).as_str())
    );
    let holder = place.hold_with(&["--label", "ada", "--ttl", "1h"], "k");
    let taken = place.run(&["force-release", "k"]);
    assert_eq!(taken.status.code(), Some(0));
    assert!(text(&taken.stdout).contains("ada"), "{taken:?}");
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 0);
    drop(holder);
    let holder = place.hold_with(&["--label", "bob", "--ttl", "1h"], "j");
    let taken: Value = serde_json::from_slice(&place.run(&["force-release", "--json", "j"]).stdout).unwrap();
    assert_eq!(taken["holders"][0]["label"], "bob");
    drop(holder);
}

#[test]
fn force_release_with_a_token_spares_every_other_grant() {
    let place = Place::file();
    let token = |key: &str| {
        let seen: Value = serde_json::from_slice(&place.run(&["inspect", "--json", key]).stdout).unwrap();
        seen["holders"][0]["token"].as_u64().unwrap()
    };
    assert_eq!(place.code(&["force-release", "k", "--token", "1"]), 1);
    let holder = place.hold_with(&["--label", "ada", "--ttl", "1h"], "k");
    let present = token("k");
    let other = (present - 64).to_string();
    let spared = place.run(&["force-release", "k", "--token", &other]);
    assert_eq!(spared.status.code(), Some(1), "{spared:?}");
    let said = text(&spared.stdout);
    assert!(
        said.starts_with(&format!("nothing is released: k is not held under the token {other}, but by\n")),
        "{said}"
    );
    assert!(said.contains("ada") && said.contains(&present.to_string()), "{said}");
    let spared: Value =
        serde_json::from_slice(&place.run(&["force-release", "--json", "--token", &other, "k"]).stdout).unwrap();
    assert_eq!((&spared["released"], &spared["holders"][0]["token"]), (&json!(false), &json!(present)));
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 75, "it is still held");
    let released = place.run(&["force-release", "--json", "--token", &present.to_string(), "k"]);
    assert_eq!(released.status.code(), Some(0), "{released:?}");
    let released: Value = serde_json::from_slice(&released.stdout).unwrap();
    assert_eq!((&released["released"], &released["holders"][0]["label"]), (&json!(true), &json!("ada")));
    assert_eq!(place.code(&["run", "-n", "k", "--", "true"]), 0);
    drop(holder);
    let readers = [place.hold_with(&["-s"], "r"), place.hold_with(&["-s"], "r")];
    let refused = place.run(&["force-release", "--token", &token("r").to_string(), "r"]);
    assert_eq!(refused.status.code(), Some(78), "a file does not let one of several readers go: {refused:?}");
    assert!(text(&refused.stderr).contains("several readers"), "{refused:?}");
    assert_eq!(place.code(&["run", "-n", "r", "--", "true"]), 75, "both still hold it");
    drop(readers);
}

#[test]
fn without_a_default_every_command_that_names_no_store_is_64() {
    let none = |args: &[&str]| {
        let mut program = leasehold(args);
        program.env("LEASEHOLD_BACKEND", "none").stdin(Stdio::null()).output().unwrap()
    };
    for args in [
        &["run", "-n", "k", "--", "echo", "ran"][..],
        &["inspect", "k"],
        &["list"],
        &["force-release", "k"],
        &["doctor"],
        &["migrate"],
    ] {
        let refused = none(args);
        assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(64), ""), "{args:?}: {refused:?}");
        assert!(text(&refused.stderr).contains("use --backend URL"), "{refused:?}");
    }
    let place = Place::file();
    assert_eq!(none(&["--backend", place.backend(), "list"]).status.code(), Some(0));
}

#[test]
fn backends_shows_every_store_that_was_built_in() {
    let plain = text(&leasehold(&["backends"]).output().unwrap().stdout);
    assert!(plain.contains("file") && plain.contains("cross-process"), "{plain}");
    let table = text(&leasehold(&["backends", "--markdown"]).output().unwrap().stdout);
    assert!(table.contains("`file:`") && table.contains('✓') && table.contains('–'), "{table}");
    let readme = include_str!("../../../../README.md");
    let is_there = readme.contains(&format!("<!-- backends:begin -->\n{}\n<!-- backends:end -->", table.trim_end()));
    assert!(is_there, "the README has another table; `cargo xtask matrix` writes it");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut program = leasehold(&["backends"]);
    let mut program = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(program.stdout.take());
    let ended = program.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), text(&ended.stderr).as_str()), (Some(0), ""));
}

#[test]
fn a_store_without_tables_or_nodes_has_nothing_to_look_after() {
    for command in ["migrate", "gc", "heal"] {
        assert_eq!(Place::file().code(&[command]), 64, "{command}");
    }
}

#[test]
fn a_session_is_for_stores_that_have_sessions() {
    assert_eq!(Place::file().code(&["--session", "me", "inspect", "k"]), 64);
}

/// As in a container that sees the directory of its host, to watch over it.
#[cfg(target_os = "linux")]
#[test]
fn what_is_held_is_seen_where_nothing_can_be_written() {
    let place = Place::file();
    let holder = place.hold_with(&["--label", "ada"], "k");
    let readers = place.hold_with(&["--label", "bob", "--shared"], "r");
    let read_only = |args: &[&str]| {
        let folder = place.backend().strip_prefix("file:").unwrap();
        let script = r#"d=$1; shift; mount --bind "$d" "$d" && mount -o remount,ro,bind "$d" || exit 99; exec "$@""#;
        let mut command = std::process::Command::new("unshare");
        command.args([
            "-m",
            "sh",
            "-c",
            script,
            "sh",
            folder,
            env!("CARGO_BIN_EXE_leasehold"),
            "--backend",
            place.backend(),
        ]);
        let output = command.args(args).output();
        let output =
            output.ok().filter(|output| output.status.code() != Some(99) && !text(&output.stderr).contains("unshare:"));
        output
            .unwrap_or_else(|| leasehold_testkit::shows_nothing("mounting a directory read-only takes the super-user"))
    };
    let listed = text(&read_only(&["list"]).stdout);
    assert!(listed.contains("ada") && listed.contains("bob"), "{listed}");
    let seen = read_only(&["inspect", "-e", "k"]);
    assert!(seen.status.code() == Some(0) && text(&seen.stdout).contains("ada"), "{seen:?}");
    let refused = read_only(&["force-release", "k"]);
    assert!(refused.status.code() == Some(78) && text(&refused.stderr).contains("ead-only"), "{refused:?}");
    let examined = read_only(&["doctor"]);
    let (code, said) = (examined.status.code(), text(&examined.stdout));
    assert!(code == Some(2) && said.contains("error   file-system: ") && said.contains("mounted read-only"), "{said}");
    assert!(!said.contains("cure  make room"), "there is room: {said}");
    drop((holder, readers));
}

#[test]
fn looking_for_locks_where_there_are_none_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for folder in [dir.path().join("mistyped/locks"), dir.path().to_owned()] {
        let place = Place::at(format!("file:{}", folder.display()));
        for args in [&["inspect", "k"][..], &["list"], &["list", "--json"], &["force-release", "k"]] {
            let output = place.run(args);
            assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(78), ""), "{args:?}: {output:?}");
            assert!(text(&output.stderr).contains(folder.to_str().unwrap()), "{args:?}: {output:?}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
    for relative in ["file:locks", "file:~/locks", "file:./locks"] {
        let output =
            Place::at(relative).leasehold(&["run", "k", "--", "true"]).current_dir(dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{relative}: {output:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
