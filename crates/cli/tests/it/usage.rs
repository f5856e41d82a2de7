//! What was typed wrong is 64, and says what.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use leasehold_testkit::launch::find;
use leasehold_testkit::{needs, test};

use crate::support::{Place, Running, ended, leasehold, path};

#[test]
fn bad_usage_is_64_and_runs_nothing() {
    const OPTIONS_OF_RUN: &str = "--no-such-option | -n -w 3 | -w soon | -w -1 | --ttl 0 | --ttl 5ms | --ttl 25h | \
        --max-hold 0 | --min-hold 5s --max-hold 1s | -E 256 | --on-lost cry | -x -s | -c true | -s -k b | --restart -n | --restart -w1s | \
        --restart -s | --permits=0 | --permits=33 | --permits=-1 | --permits=many | --shared --permits 2 | \
        --once-per 25h | --once-per 0.5 | --once-per x | --once-per 1h --permits 2 | --backend mongodb://h | \
        --backend no-url | --backend= | --backend '' | --password-file /dev/null";
    const COMMANDS: &str = " | run | run k | walk k -- echo ran | run '' -- echo ran | --backend '' list | --backend file:locks list | acquire k | hold -n | hold --label ada | hold --reason r | \
        hold -n -w 1s k | release leasehold2:x | doctor --ttl 1ms | bench --session me | bench --seconds 0 | bench --seconds 601 | \
        bench --seconds x | migrate | gc | heal | --session me inspect k | watch --interval 1ms | watch --interval x | watch --json --color never | man nothing";
    let place = Place::file();
    let of_run = OPTIONS_OF_RUN.split(" | ").map(|options| format!("run {options} k -- echo ran"));
    let too_long = [
        format!("run {} -- echo ran", "x".repeat(256)),
        format!("run --reason {} k -- echo ran", "r".repeat(1025)),
        format!("run --permits 2 {} -- echo ran", "k".repeat(251)),
    ];
    for args in COMMANDS.split(" | ").map(str::to_owned).chain(of_run).chain(too_long) {
        let refused = place.run(&args);
        refused.is(64, &[]).prints("");
        assert!(!refused.errors.is_empty(), "{args}");
    }
}

/// Of flock(1), `consul lock` and `etcdctl lock`.
#[test]
fn an_option_of_another_program_is_answered_with_the_one_that_does_the_same() {
    let place = Place::file();
    for (args, tip) in [
        ("-c 'echo ran' k", "leasehold run KEY -- sh -c"),
        ("run -e k echo", "exclusive unless -s"),
        ("run -timeout=5s k echo", "-w DUR"),
        ("run -try=5s k echo", "-w DUR"),
        ("run --nb k echo", "-n gives up at once"),
        ("run -F k echo", "leasehold stays"),
        ("run -u k", "force-release KEY"),
        ("run -pass-stdin k echo", "is the command's"),
        ("--endpoints h:2379 run k echo", "--backend URL"),
        ("run --nonblok k -- echo", "--nonblock"),
    ] {
        let refused = place.run(args);
        refused.is(64, &[tip]);
        assert!(!refused.errors.contains("as a value"), "{refused:?}");
    }
    let unknown = place.run("run --no-such-option k -- echo -c");
    assert!(!unknown.errors.contains("tip:"), "{unknown:?}");
    place.run("run -x --timeout 5 k -c 'echo $((6 * 7)); exit 4'").is(4, &[]).prints("42\n");
}

/// A file name can be any bytes, and so can what a shell makes of it.
#[test]
fn arguments_that_are_not_utf8_are_bad_usage_or_go_to_the_command() {
    let place = Place::file();
    let odd = OsStr::from_bytes(b"caf\xe9");
    let with_odd = |before: &str, after: &str| ended(place.leasehold(before).arg(odd).args(after.split_whitespace()));
    for (before, after) in [
        ("", ""),
        ("run", "-- echo ran"),
        ("run --no-such-option k", ""),
        ("run --reason", "k -- echo ran"),
        ("inspect", ""),
        ("list", ""),
        ("--backend", "list"),
        ("--session", "list"),
        ("completions", ""),
        ("man", ""),
    ] {
        let refused = with_odd(before, after);
        refused.is(64, &[]).prints("");
        assert!(!refused.errors.is_empty(), "{refused:?}");
    }
    with_odd("run --help", "").is(0, &[]);
    with_odd("run k --", "").is(127, &[]);
    let output = place.leasehold("run k -- printf %s").arg(odd).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), odd.as_bytes()));
    for variable in ["LEASEHOLD_BACKEND", "LEASEHOLD_PASSWORD"] {
        ended(Place::at("redis://127.0.0.1:1").leasehold("list").env(variable, odd)).is(64, &[]);
    }
}

/// One that opens a pipe waits for its writer, and no signal ends that.
#[test]
fn a_password_file_is_one_that_nobody_else_could_have_written_or_can_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    assert!(Command::new("mkfifo").arg(file("pipe")).status().unwrap().success());
    fs::create_dir(file("folder")).unwrap();
    let write = |name: &str, text: &str, mode: u32| {
        fs::write(file(name), text).unwrap();
        fs::set_permissions(file(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    write("empty", "\nc4n4ry\n", 0o600);
    write("group", "c4n4ry\n", 0o620);
    write("others", "c4n4ry\n", 0o602);
    write("theirs", "c4n4ry\n", 0o600);
    let listed = |name: &str| {
        let place = Place::at("redis://127.0.0.1:1");
        Running::start(place.leasehold("list --password-file").arg(file(name))).end_by_itself()
    };
    for (name, says) in [
        ("missing", "No such file"),
        ("empty", "first line is empty"),
        ("pipe", "not a regular file"),
        ("folder", "not a regular file"),
        ("group", "chmod go-w"),
        ("others", "chmod go-w"),
    ] {
        listed(name).is(78, &[says, name]);
    }
    for (mode, warned) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
        write("read", "c4n4ry\n", mode);
        let said = listed("read");
        assert_eq!(said.errors.contains("chmod go-r"), warned, "{mode:o}: {said:?}");
        fs::remove_file(file("read")).unwrap();
    }
    if std::os::unix::fs::chown(file("theirs"), Some(65_534), None).is_ok() {
        listed("theirs").is(78, &["another user"]);
    } else {
        println!("ignored for a file of another user: giving one away takes the super-user");
    }
}

const COMPLETES: &str = r#"
source <(leasehold completions bash)
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
    let mut bash = Command::new(needs("bash", find("bash")));
    bash.args(["-c", COMPLETES]).current_dir(&folder).env("PATH", path()).env("LEASEHOLD_BACKEND", place.backend());
    ended(&mut bash).is(0, &[]).prints("nightly/1\nnightly/1\n\n\nb=c\n\n");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing was run");
}

/// By the script that the image and the archives of a release are made with.
#[test]
fn a_package_has_the_program_its_completions_the_licences_and_a_page_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docker/package.sh");
    let program = env!("CARGO_BIN_EXE_leasehold");
    ended(Command::new(script).arg(program).arg(folder.path())).is(0, &[]);
    let version = ended(Command::new(folder.path().join("bin/leasehold")).arg("--version"));
    version.is(0, &[]).prints(&format!("leasehold {}\n", env!("CARGO_PKG_VERSION")));
    let share = folder.path().join("share");
    for (file, part) in [
        ("bash-completion/completions/leasehold", "min-hold"),
        ("zsh/site-functions/_leasehold", "min-hold"),
        ("fish/vendor_completions.d/leasehold.fish", "min-hold"),
        ("doc/leasehold/LICENSE-MIT", "MIT"),
        ("doc/leasehold/LICENSE-APACHE", "Apache"),
        ("man/man1/leasehold.1", "LEASEHOLD_BACKEND"),
        ("man/man1/leasehold-force-release.1", "\\-\\-token"),
        ("man/man1/leasehold-run.1", "127"),
        ("man/man1/leasehold-run.1", "LEASEHOLD_TOKEN"),
        ("man/man1/leasehold-run.1", "leasehold run \\-n nightly"),
    ] {
        assert!(fs::read_to_string(share.join(file)).unwrap().contains(part), "{file} has no {part}");
    }
    // The second time it replaces what is there.
    ended(leasehold("man --directory").arg(share.join("man/man1"))).is(0, &[]).prints("");
    ended(&mut leasehold("man --directory /dev/null/man")).is(64, &["/dev/null/man"]);
    ended(&mut leasehold("--help")).is(0, &[" Run a command while holding a lock\n", "76 lost while the command ran"]);
}

/// As from a crontab whose line sets the variable to one that is not set itself.
#[test]
fn a_store_whose_name_is_empty_is_no_store_and_one_that_is_not_named_is_told() {
    for args in ["run k -- echo ran", "inspect k", "list --json", "force-release k", "doctor", "migrate"] {
        Place::at("").run(args).is(64, &["is empty"]).prints("");
        Place::at("none").run(args).is(64, &["use --backend URL"]).prints("");
    }
    // It is told before the store is opened, so that it does not matter whether the default can be used here.
    let unnamed = |options: &str| ended(&mut leasehold(&format!("run {options} 'leasehold test of the default' true")));
    let said = unnamed("").errors;
    assert!(said.contains("no store is named") && said.contains("file:/"), "{said}");
    assert_eq!(unnamed("--json").event()["event"], "warning");
    let file = Place::file();
    assert_eq!(file.run("run k true").errors, "");
    assert_eq!(Place::at("none").code(&format!("--backend {} list", file.backend())), 0);
}

/// `bench` takes the store in this place.
#[test]
fn a_store_in_the_place_of_a_key_or_a_prefix_is_bad_usage() {
    let place = Place::file();
    for store in [place.backend(), "redis://ada:c4n4ry@h", "redlock:redis://a"] {
        for command in ["list", "inspect", "force-release", "watch --json"] {
            place.run(&format!("{command} {store}")).is(64, &["--backend URL"]);
        }
    }
    let key = "file:/etc/passwd";
    assert_eq!(place.code(&format!("run {key} true")), 0);
    for (command, code) in [("inspect -e", 1), ("list", 0), ("force-release", 1)] {
        place.run(&format!("--backend {} {command} {key}", place.backend())).is(code, &[]);
        place.run(&format!("{command} --backend {} {key}", place.backend())).is(code, &[]);
    }
    assert_eq!(place.code("list redis:cache"), 0, "a key may begin like this");
}
