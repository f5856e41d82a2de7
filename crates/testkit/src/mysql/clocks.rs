//! A client whose clock and time zone are not the server's.

use std::process::{Command, Stdio};

use leasehold_core::Clock;
use leasehold_core::conformance::{needs, shows_nothing};

use super::steps::{migrated, whole_life};
use super::subject::Subject;
use crate::harness::this_program;

const URL: &str = "LEASEHOLD_TEST_CHILD_URL";
const PARENT: &str = "LEASEHOLD_TEST_CHILD_MILLIS";
const HOUR: i64 = 3600;

pub async fn a_client_whose_clock_is_an_hour_off_is_like_any_other<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("clock_off.c"), folder.path().join("clock_off.so"));
    std::fs::write(&source, include_str!("clock_off.c")).unwrap();
    let compile = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl").status();
    let compiled = cfg!(target_os = "linux") && compile.is_ok_and(|status| status.success());
    needs("compiler for the shim that moves a clock", compiled.then_some(()));
    for isolation in ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        server.sql(&[&format!("SET GLOBAL TRANSACTION ISOLATION LEVEL {isolation}")]).await;
        for (off, zone) in [(HOUR, "Asia/Kathmandu"), (-HOUR, "America/St_Johns")] {
            let mut child = this_program("shared::a_child_lives_by_another_clock");
            child.env("LD_PRELOAD", &library).env("CLOCK_OFF", off.to_string()).env("TZ", zone);
            child.env(URL, server.url()).env(PARENT, Clock::system().unix_millis().to_string());
            let ended = child.stderr(Stdio::inherit()).output().unwrap();
            let told = String::from_utf8_lossy(&ended.stdout);
            assert!(ended.status.success() && told.contains("1 passed"), "{isolation}, {off} s off: {told}");
        }
    }
}

/// Not a test of its own: what the process does.
pub async fn a_child_lives_by_another_clock<S: Subject>() {
    let (Ok(url), Ok(parent)) = (std::env::var(URL), std::env::var(PARENT)) else {
        shows_nothing("another test runs it in processes of their own")
    };
    let off = Clock::system().unix_millis().abs_diff(parent.parse().unwrap());
    assert!(off > 3_000_000, "the clock is right, so this shows nothing: {off} ms");
    let ours = S::connect_to(&format!("{url}&client_found_rows=true")).await.unwrap();
    let theirs = S::connect_to(&format!("{url}&client_found_rows=false")).await.unwrap();
    whole_life::<S>(&ours, &theirs, "k").await;
}
