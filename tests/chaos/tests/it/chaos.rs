//! A run of chaos finds a lock that excludes nobody. Runs on real servers are `cargo xtask chaos`, of which a deep run of the tests has one.

use std::path::Path;
use std::process::Command;

use leasehold_testkit::test;

#[test]
fn a_lock_that_always_grants_is_found_out() {
    // It stays if the run fails.
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chaos/always-grants");
    let mut chaos = Command::new(env!("CARGO_BIN_EXE_leasehold-chaos"));
    chaos.arg("--output").arg(&output).args(["--seconds", "6", "--seed", "1", "always-grants"]);
    let run = chaos.output().expect("the program starts");
    let told = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{told}");
    let report = std::fs::read_to_string(output.join("report.json")).expect("there is a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("the report is JSON");
    for found in ["overlaps", "unfenced_losses"] {
        assert!(report[0][found].as_u64().is_some_and(|times| times > 0), "no {found}: {report}");
    }
    assert!(told.contains("replay: cargo xtask chaos"), "{told}");
}
