//! Who holds what, for people and for programs.

use std::process::{Command, Stdio};

use leasehold_testkit::{shows_nothing, test};
use serde_json::Value;

use crate::support::{Place, ended, leasehold, text};

#[test]
fn inspect_tells_who_holds_a_key_and_what_for() {
    let place = Place::file();
    place.run("inspect k").is(0, &[]).prints(&format!("k is free in {}\n", place.backend()));
    assert_eq!(place.code("inspect --exit-code k"), 1);
    let _holder = place.hold_with("--reason 'nightly report' --label ada", "k");
    place.run("inspect --exit-code k").is(0, &["k ", "exclusive", "ada", "nightly report"]);
    let seen = place.inspect("k");
    let holder = &seen["holders"][0];
    assert!(seen["key"] == "k" && seen["held"] == true && seen["backend"] == place.backend(), "{seen}");
    assert!(seen["waiters"].is_null() && holder["token"].as_u64().unwrap() > 0, "{seen}");
    assert!(holder["label"] == "ada" && holder["reason"] == "nightly report", "{seen}");
    let _other = place.hold("unlabelled");
    let label = place.inspect("unlabelled")["holders"][0]["label"].to_string();
    assert!(label.contains('@') && label.contains(" pid "), "user, host and process: {label}");
}

#[test]
fn list_shows_the_held_keys_with_a_prefix_in_order() {
    let place = Place::file();
    place.run("list").is(0, &[]).prints(&format!("nothing is held in {}\n", place.backend()));
    let _holders = ["job/b", "job/a", "other\n\u{1b}[2J"].map(|key| place.hold(key));
    let keys = |args: &str| {
        let lines = place.run(args).output;
        let fields = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        fields.map(|fields| fields["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys("list --json"), ["job/a", "job/b", "other\n\u{1b}[2J"]);
    assert_eq!(keys("list --json job/"), ["job/a", "job/b"]);
    assert_eq!(keys("list --json nothing"), [""; 0]);
    let table = place.run("list").output;
    let table: Vec<_> = table.lines().collect();
    assert_eq!((table.len(), table[4]), (5, format!("in {}", place.backend()).as_str()));
    assert!(table[3].starts_with(r#""other\n\u{1b}[2J""#), "a key cannot play with the terminal: {table:?}");
}

#[test]
fn force_release_with_a_token_spares_every_other_grant() {
    let place = Place::file();
    let token = |key: &str| place.inspect(key)["holders"][0]["token"].as_u64().unwrap();
    assert_eq!(place.code("force-release k --token 1"), 1);
    let _ada = place.hold_with("--label ada --ttl 1h", "k");
    let (present, other) = (token("k"), token("k") - 64);
    let spared = format!("nothing is released: k is not held under the token {other}, but by\n");
    place.run(&format!("force-release k --token {other}")).is(1, &[&spared, "ada", &present.to_string()]);
    let spared = place.json(&format!("force-release --json --token {other} k"));
    assert!(spared["released"] == false && spared["holders"][0]["token"] == present, "{spared}");
    assert!(!place.is_free("k"));
    let released = place.json(&format!("force-release --json --token {present} k"));
    assert!(released["released"] == true && released["holders"][0]["label"] == "ada", "{released}");
    assert!(place.is_free("k"));
    let _readers = [(); 2].map(|()| place.hold_with("-s", "r"));
    // A file does not let one of several readers go.
    place.run(&format!("force-release --token {} r", token("r"))).is(78, &["several readers"]);
    assert!(!place.is_free("r"), "both still hold it");
}

#[test]
fn without_a_default_every_command_that_names_no_store_is_64() {
    let none = |args: &str| ended(leasehold(args).env("LEASEHOLD_BACKEND", "none"));
    for args in ["run -n k -- echo ran", "inspect k", "list", "force-release k", "doctor", "migrate"] {
        none(args).is(64, &["use --backend URL"]).prints("");
    }
    let place = Place::file();
    none(&format!("--backend {} list", place.backend())).is(0, &[]);
}

#[test]
fn backends_shows_every_store_that_was_built_in() {
    ended(&mut leasehold("backends")).is(0, &["file", "cross-process"]);
    let table = ended(&mut leasehold("backends --markdown"));
    table.is(0, &["`file:`", "✓", "–"]);
    let kept = format!("<!-- backends:begin -->\n{}\n<!-- backends:end -->", table.output.trim_end());
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains(&kept), "the README has another table; `cargo xtask matrix` writes it");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut program = leasehold("backends").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(program.stdout.take());
    let ended = program.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), text(&ended.stderr).as_str()), (Some(0), ""));
}

#[test]
fn what_a_store_of_files_does_not_have_is_bad_usage() {
    for args in ["migrate", "gc", "heal", "--session me inspect k"] {
        Place::file().run(args).is(64, &[]);
    }
}

/// As in a container that sees the directory of its host, to watch over it.
#[cfg(target_os = "linux")]
#[test]
fn what_is_held_is_seen_where_nothing_can_be_written() {
    let place = Place::file();
    let _holders = (place.hold_with("--label ada", "k"), place.hold_with("--label bob --shared", "r"));
    let read_only = |args: &str| {
        let folder = place.backend().strip_prefix("file:").unwrap();
        let script = r#"d=$1; shift; mount --bind "$d" "$d" && mount -o remount,ro,bind "$d" || exit 99; exec "$@""#;
        let program = [env!("CARGO_BIN_EXE_leasehold"), "--backend", place.backend()];
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh", folder]).args(program).args(args.split(' '));
        let may = Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success());
        let seen = may.then(|| ended(&mut command)).filter(|seen| seen.code != Some(99));
        seen.unwrap_or_else(|| shows_nothing("mounting a directory read-only takes the super-user"))
    };
    read_only("list").is(0, &["ada", "bob"]);
    read_only("inspect -e k").is(0, &["ada"]);
    read_only("force-release k").is(78, &["ead-only"]);
    let examined = read_only("doctor");
    examined.is(2, &["error   file-system: ", "mounted read-only"]);
    assert!(!examined.output.contains("cure  make room"), "there is room: {examined:?}");
}

#[test]
fn looking_for_locks_where_there_are_none_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let is_empty = || std::fs::read_dir(dir.path()).unwrap().count() == 0;
    for folder in [dir.path().join("mistyped/locks"), dir.path().to_owned()] {
        let place = Place::at(format!("file:{}", folder.display()));
        for args in ["inspect k", "list", "list --json", "force-release k"] {
            place.run(args).is(78, &[folder.to_str().unwrap()]).prints("");
        }
        assert!(is_empty());
    }
    for relative in ["file:locks", "file:~/locks", "file:./locks"] {
        ended(Place::at(relative).leasehold("run k true").current_dir(dir.path())).is(64, &[]);
        assert!(is_empty());
    }
}
