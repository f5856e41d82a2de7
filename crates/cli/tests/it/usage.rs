//! What was typed wrong is 64, and says what.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use leasehold_testkit::launch::find;
use leasehold_testkit::{needs, test};

use crate::support::{Place, Running, leasehold, path, text};

#[test]
fn bad_usage_is_64_and_runs_nothing() {
    let place = Place::file();
    let long = "x".repeat(256);
    for args in [
        &[][..],
        &["run"],
        &["run", "k"],
        &["walk", "k", "--", "echo", "ran"],
        &["run", "", "--", "echo", "ran"],
        &["run", &long, "--", "echo", "ran"],
        &["run", "--no-such-option", "k", "--", "echo", "ran"],
        &["run", "-n", "-w", "3", "k", "--", "echo", "ran"],
        &["run", "-w", "soon", "k", "--", "echo", "ran"],
        &["run", "-w", "-1", "k", "--", "echo", "ran"],
        &["run", "--ttl", "0", "k", "--", "echo", "ran"],
        &["run", "--ttl", "5ms", "k", "--", "echo", "ran"],
        &["run", "--ttl", "25h", "k", "--", "echo", "ran"],
        &["run", "--max-hold", "0", "k", "--", "echo", "ran"],
        &["run", "--min-hold", "5s", "--max-hold", "1s", "k", "--", "echo", "ran"],
        &["run", "-E", "256", "k", "--", "echo", "ran"],
        &["run", "--on-lost", "cry", "k", "--", "echo", "ran"],
        &["run", "--reason", &"r".repeat(1025), "k", "--", "echo", "ran"],
        &["--backend", "mongodb://h", "run", "k", "--", "echo", "ran"],
        &["--backend", "no-url", "run", "k", "--", "echo", "ran"],
        &["--backend", "", "run", "k", "--", "echo", "ran"],
        &["run", "--backend=", "k", "--", "echo", "ran"],
        &["--backend", "", "list"],
        &["--password-file", "/dev/null", "run", "k", "--", "echo", "ran"],
        &["man", "nothing"],
    ] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {output:?}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}

/// Of flock(1), `consul lock` and `etcdctl lock`.
#[test]
fn an_option_of_another_program_is_answered_with_the_one_that_does_the_same() {
    let place = Place::file();
    let said = |args: &[&str]| {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {output:?}");
        text(&output.stderr)
    };
    for (args, tip) in [
        (&["-c", "echo ran", "k"][..], "leasehold run KEY -- sh -c"),
        (&["run", "-e", "k", "echo"], "exclusive unless -s"),
        (&["run", "-timeout=5s", "k", "echo"], "-w DUR"),
        (&["run", "-try=5s", "k", "echo"], "-w DUR"),
        (&["run", "--nb", "k", "echo"], "-n gives up at once"),
        (&["run", "-F", "k", "echo"], "leasehold stays"),
        (&["run", "-u", "k"], "force-release KEY"),
        (&["run", "-pass-stdin", "k", "echo"], "is the command's"),
        (&["--endpoints", "h:2379", "run", "k", "echo"], "--backend URL"),
    ] {
        let said = said(args);
        assert!(said.contains(tip) && !said.contains("as a value"), "{args:?}: {said}");
    }
    let unknown = said(&["run", "--no-such-option", "k", "--", "echo", "-c"]);
    assert!(!unknown.contains("tip:"), "{unknown}");
    let misspelt = said(&["run", "--nonblok", "k", "--", "echo"]);
    assert!(misspelt.contains("--nonblock"), "{misspelt}");
}

/// A file name can be any bytes, and so can what a shell makes of it.
#[test]
fn arguments_that_are_not_utf8_are_bad_usage_or_go_to_the_command() {
    let place = Place::file();
    let odd = OsStr::from_bytes(b"caf\xe9");
    let ended = |before: &[&str], after: &[&str]| {
        place.leasehold(before).arg(odd).args(after).stdin(Stdio::null()).output().unwrap()
    };
    for (before, after) in [
        (&[][..], &[][..]),
        (&["run"], &["--", "echo", "ran"]),
        (&["run", "--no-such-option", "k"], &[]),
        (&["run", "--reason"], &["k", "--", "echo", "ran"]),
        (&["inspect"], &[]),
        (&["list"], &[]),
        (&["--backend"], &["list"]),
        (&["--session"], &["list"]),
        (&["completions"], &[]),
        (&["man"], &[]),
    ] {
        let output = ended(before, after);
        assert_eq!(output.status.code(), Some(64), "{before:?}: {output:?}");
        assert_eq!(text(&output.stdout), "", "{before:?}");
        assert!(!output.stderr.is_empty(), "{before:?}");
    }
    assert_eq!(ended(&["run", "--help"], &[]).status.code(), Some(0));
    let output = ended(&["run", "k", "--", "printf", "%s"], &[]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), odd.as_bytes()), "{output:?}");
    let unknown = ended(&["run", "k", "--"], &[]);
    assert_eq!(unknown.status.code(), Some(127), "{unknown:?}");
    for variable in ["LEASEHOLD_BACKEND", "LEASEHOLD_PASSWORD"] {
        let output = Place::at("redis://127.0.0.1:1").leasehold(&["list"]).env(variable, odd).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{variable}: {output:?}");
    }
}

#[test]
fn a_directory_that_cannot_be_used_is_78_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let open = dir.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [open, file.join("below"), file] {
        let place = Place::at(format!("file:{}", path.display()));
        let output = place.run(&["run", "k", "--", "echo", "ran"]);
        assert_eq!(output.status.code(), Some(78), "{output:?}");
        assert_eq!(text(&output.stdout), "");
        assert!(text(&output.stderr).contains(path.to_str().unwrap()), "{output:?}");
    }
}

#[cfg(feature = "redis")]
#[test]
fn a_password_file_that_cannot_be_read_is_78_and_named() {
    let output = leasehold(&["--backend", "redis://127.0.0.1:1", "--password-file", "/no/such/file", "list"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(78), "{output:?}");
    assert!(text(&output.stderr).contains("/no/such/file"));
}

/// One that opens a pipe waits for its writer, and no signal ends that.
#[cfg(feature = "redis")]
#[test]
fn a_password_file_that_is_a_pipe_or_that_others_could_have_written_is_78() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let made = Command::new("mkfifo").arg(file("pipe")).status().unwrap();
    assert!(made.success());
    fs::create_dir(file("folder")).unwrap();
    for (name, mode) in [("group", 0o620), ("others", 0o602)] {
        fs::write(file(name), "secret\n").unwrap();
        fs::set_permissions(file(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    fs::write(file("theirs"), "secret\n").unwrap();
    let given_away = std::os::unix::fs::chown(file("theirs"), Some(65_534), None).is_ok();
    if !given_away {
        println!("ignored for a file of another user: giving one away takes the super-user");
    }
    fs::write(file("empty"), "\nsecret\n").unwrap();
    fs::set_permissions(file("empty"), PermissionsExt::from_mode(0o600)).unwrap();
    for (name, says) in [
        ("empty", "first line is empty"),
        ("pipe", "not a regular file"),
        ("folder", "not a regular file"),
        ("group", "chmod go-w"),
        ("others", "chmod go-w"),
        ("theirs", "another user"),
    ] {
        if name == "theirs" && !given_away {
            continue;
        }
        let path = file(name);
        let args = ["--backend", "redis://127.0.0.1:1", "--password-file", path.to_str().unwrap(), "list"];
        let ended = Running::start(&mut leasehold(&args)).end_by_itself();
        assert_eq!(ended.code, Some(78), "{name}: {ended:?}");
        assert!(ended.errors.contains(says) && ended.errors.contains(name), "{name}: {ended:?}");
        assert!(!ended.errors.contains("secret"), "{ended:?}");
    }
}

#[test]
fn help_shows_examples_and_exit_codes_and_succeeds() {
    let output = leasehold(&["--help"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    for part in ["leasehold run -n nightly -- ./report.sh", "76 lost while the command ran", "force-release"] {
        assert!(help.contains(part), "{part} is not in {help}");
    }
    let run = text(&leasehold(&["run", "--help"]).output().unwrap().stdout);
    let migrate = text(&leasehold(&["migrate", "-h"]).output().unwrap().stdout);
    assert!(migrate.contains("MySQL, MariaDB or PostgreSQL"), "{migrate}");
    for option in ["--nonblock", "--wait", "--shared", "--ttl", "--min-hold", "--max-hold", "--on-lost", "--kill-after"]
    {
        assert!(run.contains(option), "{option} is not in {run}");
    }
}

#[test]
fn man_pages_and_completions_come_from_the_same_definitions() {
    for (args, part) in [
        (&["man"][..], "force\\-release"),
        (&["man", "run"], "min\\-hold"),
        (&["completions", "bash"], "--min-hold"),
        (&["completions", "zsh"], "--min-hold"),
        (&["completions", "fish"], "min-hold"),
    ] {
        let output = leasehold(args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(text(&output.stdout).contains(part), "{args:?}");
    }
}

const COMPLETES: &str = r#"
source /dev/stdin
ask() {
    COMPREPLY=(); COMP_WORDS=(leasehold "$@"); COMP_CWORD=$#; COMP_LINE="leasehold $*"; COMP_POINT=${#COMP_LINE}
    _leasehold_with_keys leasehold "${@: -1}" x
}
ask inspect night; echo "${COMPREPLY[*]}"
ask run -n night; echo "${COMPREPLY[*]}"
ask run k -- night; echo "${COMPREPLY[*]}"
ask inspect '$'; echo "${COMPREPLY[*]}"
COMP_LINE='leasehold wait a:b'; COMP_POINT=18; COMP_WORDS=(leasehold wait a : b); COMP_CWORD=4; COMPREPLY=()
_leasehold_with_keys leasehold b x; echo "${COMPREPLY[*]}"
ask --backend file:/another inspect night; echo "${COMPREPLY[*]}"
"#;

/// Also where another user of the store gave a key a name that a shell would carry out.
#[test]
fn keys_that_are_held_are_completed() {
    let (place, folder) = (Place::file(), tempfile::tempdir().unwrap());
    let _held = ["nightly/1", "$(touch${IFS}run)", "nightly two", "a:b=c"].map(|key| place.hold(key));
    let script = place.leasehold(&["completions", "bash"]).output().unwrap().stdout;
    let mut bash = Command::new(needs("bash", find("bash")));
    bash.args(["-c", COMPLETES]).current_dir(&folder).env("PATH", path());
    bash.env("LEASEHOLD_BACKEND", place.backend()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut bash = bash.spawn().unwrap();
    bash.stdin.take().unwrap().write_all(&script).unwrap();
    let output = bash.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), "nightly/1\nnightly/1\n\n\nb=c\n\n");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing was run");
}

/// By the script that the image and the archives of a release are made with.
#[test]
fn a_package_has_the_program_its_pages_its_completions_and_the_licences() {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docker/package.sh");
    let made = Command::new(script).arg(env!("CARGO_BIN_EXE_leasehold")).arg(folder.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let read = |file: &str| fs::read_to_string(folder.path().join("share").join(file)).unwrap();
    assert!(read("man/man1/leasehold-run.1").contains("min\\-hold"));
    for completions in [
        "bash-completion/completions/leasehold",
        "zsh/site-functions/_leasehold",
        "fish/vendor_completions.d/leasehold.fish",
    ] {
        assert!(read(completions).contains("min-hold"), "{completions}");
    }
    assert!(
        read("doc/leasehold/LICENSE-MIT").contains("MIT") && read("doc/leasehold/LICENSE-APACHE").contains("Apache")
    );
    let packaged = Command::new(folder.path().join("bin/leasehold")).arg("--version").output().unwrap();
    assert_eq!(text(&packaged.stdout), format!("leasehold {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_package_gets_a_manual_page_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man/man1");
    let write = || leasehold(&["man", "--directory", pages.to_str().unwrap()]).output().unwrap();
    // The second time it replaces what is there.
    for output in [write(), write()] {
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    let help = text(&leasehold(&["--help"]).output().unwrap().stdout);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let mut expected: Vec<String> = commands
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .map(|command| format!("leasehold-{command}.1"))
        .collect();
    assert!(expected.contains(&"leasehold-run.1".to_owned()), "{help}");
    expected.push("leasehold.1".to_owned());
    expected.sort();
    let written = fs::read_dir(&pages).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut written: Vec<String> = written.collect();
    written.sort();
    assert_eq!(written, expected);
    for page in written {
        let text = fs::read_to_string(pages.join(&page)).unwrap();
        assert!(text.contains(".TH "), "{page:?} is no manual page");
        for section in ["OPTIONS", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES"] {
            let (_, behind) = text
                .split_once(&format!(".SH \"{section}\"\n"))
                .or_else(|| text.split_once(&format!(".SH {section}\n")))
                .unwrap_or_else(|| panic!("{page:?} has no {section}"));
            assert!(
                behind.lines().any(|line| !line.starts_with('.') && !line.is_empty()),
                "{page:?}: {section} is empty"
            );
        }
    }
    let run = fs::read_to_string(pages.join("leasehold-run.1")).unwrap();
    for said in ["127", "LEASEHOLD_TOKEN", "leasehold run \\-n nightly"] {
        assert!(run.contains(said), "{said} is not in {run}");
    }
    let refused = leasehold(&["man", "--directory", "/dev/null/man"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(64), "{refused:?}");
    assert!(text(&refused.stderr).contains("/dev/null/man"), "{refused:?}");
}

/// As from a crontab whose line sets the variable to one that is not set itself.
#[test]
fn a_store_whose_name_is_empty_is_no_store_and_one_that_is_not_named_is_told() {
    for variable in ["", "none"] {
        for args in [&["run", "k", "--", "echo", "ran"][..], &["inspect", "k"], &["list", "--json"], &["doctor"]] {
            let output = leasehold(args).env("LEASEHOLD_BACKEND", variable).stdin(Stdio::null()).output().unwrap();
            assert_eq!(output.status.code(), Some(64), "{variable:?} {args:?}: {output:?}");
            assert_eq!(text(&output.stdout), "", "{variable:?} {args:?}");
        }
    }
    // It is told before the store is opened, so that it does not matter whether the default can be used here.
    let unnamed = |options: &[&str]| {
        let args = [&["run"], options, &["leasehold test of the default", "--", "true"]].concat();
        text(&leasehold(&args).stdin(Stdio::null()).output().unwrap().stderr)
    };
    let said = unnamed(&[]);
    assert!(said.contains("no store is named") && said.contains("file:/"), "{said}");
    let said = unnamed(&["--json"]);
    let first: serde_json::Value = serde_json::from_str(said.lines().next().unwrap_or_default()).unwrap();
    assert_eq!(first["event"], "warning", "{said}");
    let named = Place::file().run(&["run", "k", "--", "true"]);
    assert_eq!(text(&named.stderr), "");
}

/// `bench` takes the store in this place.
#[test]
fn a_store_in_the_place_of_a_key_or_a_prefix_is_bad_usage() {
    let place = Place::file();
    let stores = [
        place.backend(),
        #[cfg(feature = "redis")]
        "redis://ada:c4n4ry@h",
        #[cfg(feature = "redis")]
        "redlock:redis://a",
    ];
    for store in stores {
        for args in [
            &["list"][..],
            &["inspect"],
            &["force-release"],
            #[cfg(feature = "watch")]
            &["watch", "--json"],
        ] {
            let output = place.run(&[args, &[store]].concat());
            assert_eq!(output.status.code(), Some(64), "{args:?} {store}: {output:?}");
            let said = text(&output.stderr);
            assert!(said.contains("--backend URL") && !said.contains("c4n4ry"), "{args:?}: {said}");
        }
    }
    let key = "file:/etc/passwd";
    assert_eq!(place.code(&["run", key, "--", "true"]), 0);
    for (args, code) in [(&["inspect", "-e"][..], 1), (&["list"], 0), (&["force-release"], 1)] {
        assert_eq!(place.code(&[&["--backend", place.backend()], args, &[key]].concat()), code, "{args:?}");
        assert_eq!(place.code(&[args, &["--backend", place.backend(), key]].concat()), code, "{args:?}");
    }
    assert_eq!(place.code(&["list", "redis:cache"]), 0, "a key may begin like this");
}

#[cfg(feature = "redis")]
#[test]
fn a_password_file_that_others_can_read_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    fs::write(&file, "secret\n").unwrap();
    for (mode, warned) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
        fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        let args = ["--backend", "redis://127.0.0.1:1", "--password-file", file.to_str().unwrap(), "list"];
        let said = text(&leasehold(&args).output().unwrap().stderr);
        assert_eq!(said.contains("chmod go-r"), warned, "{mode:o}: {said}");
    }
}
