use std::fs;

use leasehold_testkit::needs;
use leasehold_testkit::{mysql, redis, test};

use crate::running::{all_of, line_of};

#[test(multi_thread)]
async fn every_store_is_used_by_the_same_code() {
    let redis = needs("redis-server", redis::Server::start(&["--requirepass", "secret"]).await);
    let mariadb = mysql::Server::needed(&[]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{}", folder.path().join("locks").display());
    let told = line_of(env!("CARGO_BIN_EXE_any_store"), &[&file, &redis.url(), &mariadb.url()]);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines.len() == 3 && !told.contains("secret"), "{told}");
    assert!(lines[0].ends_with("held on file, readers beside writers"), "{told}");
    assert!(lines[1].ends_with("held on redis-single, writers only"), "{told}");
    assert!(lines[2].ends_with("held on mysql-unique, writers only"), "{told}");
}

#[test]
fn a_cache_is_filled_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let locks = format!("file:{}", folder.path().join("locks").display());
    let file = folder.path().join("rates").display().to_string();
    let on = |day| all_of(6, env!("CARGO_BIN_EXE_cache"), &[&locks, &file, day]);
    let (first, second) = (on("2026-05-01"), on("2026-05-02"));
    for (day, told) in [("2026-05-01: rates", &first), ("2026-05-02: rates", &second)] {
        // The line names the process that fetched.
        assert!(told[0].starts_with(day) && told.iter().all(|rates| *rates == told[0]), "{told:?}");
    }
    assert_ne!(first[0], second[0]);
}

#[test]
fn threads_and_processes_count_one_after_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let locks = format!("file:{}", folder.path().join("locks").display());
    let file = folder.path().join("count").display().to_string();
    let told = all_of(3, env!("CARGO_BIN_EXE_counter"), &[&locks, &file, "50"]);
    assert_eq!(told, ["counted 100 times"; 3]);
    assert_eq!(fs::read_to_string(&file).expect("the count"), "300");
}
