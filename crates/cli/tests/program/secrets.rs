//! A password is in no output, whatever happens.

use std::fs;
use std::process::Command;

use crate::support::{Place, leasehold, text};

const CANARY: &str = "c4n4ry-in-a-coal-mine";

#[track_caller]
fn sings_nowhere(command: &mut Command) {
    let output = command.output().unwrap();
    for stream in [&output.stdout, &output.stderr] {
        assert!(!text(stream).contains(CANARY), "{:?}: {}", command.get_args(), text(stream));
    }
}

pub(crate) fn a_password_is_in_no_output() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    fs::write(&file, format!("{CANARY}\nmore\n")).unwrap();
    let file = file.to_str().unwrap();
    let nobody = "redis://127.0.0.1:1/0";
    let run = ["run", "-n", "-vv", "k", "--", "env"];
    // In the URL, rightly and wrongly written, as an argument and from the environment.
    for url in [
        format!("redis://:{CANARY}@127.0.0.1:1/0"),
        format!("redis://ada:{CANARY}@127.0.0.1:1/not-a-number"),
        format!("redis-sentinel://:x@127.0.0.1:1?sentinelServiceName=m&sentinelPassword={CANARY}"),
        format!("redis-cluster://:{CANARY}@127.0.0.1:1"),
        format!("rediss://:{CANARY}@127.0.0.1:1"),
        format!("redis://:a/{CANARY}@h"),
        format!("redis//:{CANARY}@h"),
        format!("{CANARY}@h:6379"),
        format!("nowhere://:{CANARY}@h"),
    ] {
        for args in [&run[..], &["list"], &["inspect", "--json", "k"], &["run", "--json", "-w", "10ms", "k", "env"]] {
            sings_nowhere(leasehold(args).env("LEASEHOLD_BACKEND", &url));
            sings_nowhere(&mut leasehold(&[&["--backend", &url], args].concat()));
        }
        sings_nowhere(&mut leasehold(&[&url]));
        sings_nowhere(leasehold(&["--help"]).env("LEASEHOLD_BACKEND", &url));
        sings_nowhere(leasehold(&["run", "--help"]).env("LEASEHOLD_BACKEND", &url));
    }
    // From the environment and from a file.
    sings_nowhere(leasehold(&run).env("LEASEHOLD_BACKEND", nobody).env("LEASEHOLD_PASSWORD", CANARY));
    sings_nowhere(
        leasehold(&run).env("LEASEHOLD_BACKEND", nobody).env("RUST_LOG", "trace").env("LEASEHOLD_PASSWORD", CANARY),
    );
    sings_nowhere(&mut leasehold(&[&["--backend", nobody, "--password-file", file], &run[..]].concat()));
    // In the environment of a command that does run.
    sings_nowhere(Place::file().leasehold(&run).env("LEASEHOLD_PASSWORD", CANARY));
}
