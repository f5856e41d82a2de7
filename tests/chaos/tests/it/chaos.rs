//! A run of chaos finds a lock that excludes nobody. Runs on real servers are `cargo xtask chaos`, of which a deep run of the tests has one.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use leasehold_testkit::test;

fn chaos(output: &Path, words: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_leasehold-chaos"));
    program.arg("--output").arg(output).args(words);
    program.output().expect("the program starts")
}

/// A folder that stays if the run fails.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chaos").join(name);
    std::fs::create_dir_all(&folder).expect("the folder can be created");
    folder
}

#[test]
fn a_lock_that_always_grants_is_found_out() {
    let output = folder("always-grants");
    let run = chaos(&output, &["--seconds", "6", "--seed", "1", "always-grants"]);
    let told = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{told}");
    let report = std::fs::read_to_string(output.join("report.json")).expect("there is a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("the report is JSON");
    for found in ["overlaps", "unfenced_losses"] {
        assert!(report[0][found].as_u64().is_some_and(|times| times > 0), "no {found}: {report}");
    }
    assert!(told.contains("replay: cargo xtask chaos"), "{told}");
}
