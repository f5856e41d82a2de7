//! Who holds what, for people and for programs.

use std::process::{Command, Stdio};

use leasehold_testkit::{shows_nothing, test};

use crate::support::{Place, ended, leasehold, text};

#[test]
fn backends_shows_every_store_that_was_built_in() {
    ended(&mut leasehold("backends")).is(0, &["file", "cross-process"]);
    let table = ended(&mut leasehold("backends --markdown"));
    table.is(0, &["`file:`", "| lease, "]);
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
}
