//! Real clients on real servers under faults, for a short while on each backend: `cargo xtask chaos` runs for longer, and
//! with another schedule of faults each time.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use leasehold_testkit::launch::{etcd, find, mariadb, postgres, redis};
use leasehold_testkit::needs;

/// How long each backend is tested, in seconds.
const SECONDS: &str = "15";

/// A test that fails is to fail again.
const SEED: &str = "1";

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

fn survives(backend: &str) {
    let run = chaos(&folder(backend), &["--seconds", SECONDS, "--seed", SEED, backend]);
    let (told, failed) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{told}\n{failed}");
}

fn file_survives_chaos() {
    survives("file");
}

fn redis_single_survives_chaos() {
    needs("Redis", find(redis::PROGRAM));
    survives("redis-single");
}

fn redis_reentrant_survives_chaos() {
    needs("Redis", find(redis::PROGRAM));
    survives("redis-reentrant");
}

fn redis_rw_survives_chaos() {
    needs("Redis", find(redis::PROGRAM));
    survives("redis-rw");
}

fn redlock_survives_chaos() {
    needs("Redis", find(redis::PROGRAM));
    survives("redlock");
}

fn mysql_unique_survives_chaos() {
    needs("MariaDB", find(mariadb::PROGRAM));
    survives("mysql-unique");
}

fn mysql_rw_survives_chaos() {
    needs("MariaDB", find(mariadb::PROGRAM));
    survives("mysql-rw");
}

fn postgres_survives_chaos() {
    needs("PostgreSQL", find(postgres::PROGRAM));
    survives("postgres");
}

fn etcd_survives_chaos() {
    needs("etcd", find(etcd::PROGRAM).and(find(etcd::CONTROL)));
    survives("etcd");
}

fn redis_with_confirming_replicas_survives_chaos() {
    needs("Redis", find(redis::PROGRAM));
    survives("redis-confirmed");
}

fn a_lock_that_always_grants_is_found_out() {
    let output = folder("always-grants");
    let run = chaos(&output, &["--seconds", "6", "--seed", SEED, "always-grants"]);
    let told = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{told}");
    let report = std::fs::read_to_string(output.join("report.json")).expect("there is a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("the report is JSON");
    for found in ["overlaps", "unfenced_losses"] {
        assert!(report[0][found].as_u64().is_some_and(|times| times > 0), "no {found}: {report}");
    }
    assert!(told.contains("replay: cargo xtask chaos"), "{told}");
}

leasehold_testkit::main! {
    at_once: 3;
    etcd_survives_chaos,
    redis_with_confirming_replicas_survives_chaos,
    a_lock_that_always_grants_is_found_out,
    file_survives_chaos,
    redis_single_survives_chaos,
    redis_reentrant_survives_chaos,
    redis_rw_survives_chaos,
    redlock_survives_chaos,
    mysql_unique_survives_chaos,
    mysql_rw_survives_chaos,
    postgres_survives_chaos,
}
