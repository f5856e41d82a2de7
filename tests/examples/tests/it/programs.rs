//! The programs of `src/bin`: what each of them does.

use std::fs;
use std::net::TcpStream;
use std::path::Path;

use leasehold::{Admin, LockerExt};
use leasehold_testkit::launch::free_port;
use leasehold_testkit::redis::Server;
use leasehold_testkit::{eventually, mysql, needs, test};

use crate::running::{Running, all_of, answer, ask};

async fn redis() -> Server {
    needs("redis-server", Server::start(&[]).await)
}

/// The README lists each program, and each begins with what it shows and how it is run.
#[test]
fn every_program_is_listed_and_says_how_it_is_run() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(package.join("README.md")).unwrap();
    let mut programs = 0;
    for file in fs::read_dir(package.join("src/bin")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_stem().unwrap().display();
        assert!(readme.contains(&format!("| [`{name}`](src/bin/{name}.rs) |")), "README.md does not list {name}");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{name} does not begin with what it shows");
        assert!(text.contains(&format!("\n//! $ cargo run -p leasehold-examples --bin {name} -- ")), "{name}");
        assert!(text.lines().count() <= 130, "{name} does not fit on two screens");
        programs += 1;
    }
    assert_eq!(readme.matches("](src/bin/").count(), programs, "README.md lists what is not there");
}

#[test(multi_thread)]
async fn every_store_is_used_by_the_same_code() {
    let redis = needs("redis-server", Server::start(&["--requirepass", "secret"]).await);
    let mariadb = mysql::Server::needed(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = format!("file:{}", folder.path().join("locks").display());
    let told = Running::start(env!("CARGO_BIN_EXE_any_store"), &[&file, &redis.url(), &mariadb.url()]).rest();
    assert!(told.len() == 3 && !told.join("\n").contains("secret"), "{told:?}");
    assert!(told[0].ends_with("held on file, readers beside writers"), "{told:?}");
    assert!(told[1].ends_with("held on redis-single, writers only"), "{told:?}");
    assert!(told[2].ends_with("held on mysql-unique, writers only"), "{told:?}");
}

#[test]
fn a_cache_is_filled_once() {
    let folder = tempfile::tempdir().unwrap();
    let locks = format!("file:{}", folder.path().join("locks").display());
    let file = folder.path().join("rates").display().to_string();
    let [first, second] = ["2026-05-01", "2026-05-02"].map(|day| {
        let mut told = all_of(6, env!("CARGO_BIN_EXE_cache"), &[&locks, &file, day]);
        // The line names the process that fetched.
        told.dedup();
        assert!(told.len() == 1 && told[0].starts_with(&format!("{day}: rates")), "{told:?}");
        told.remove(0)
    });
    assert_ne!(first, second);
}

#[test]
fn threads_and_processes_count_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let locks = format!("file:{}", folder.path().join("locks").display());
    let file = folder.path().join("count").display().to_string();
    let told = all_of(3, env!("CARGO_BIN_EXE_counter"), &[&locks, &file, "50"]);
    assert_eq!(told, ["counted 100 times"; 3]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "300");
}

#[test(multi_thread)]
async fn a_late_write_is_refused() {
    let (redis, mariadb) = (redis().await, mysql::Server::needed(&[]).await);
    let programs = [env!("CARGO_BIN_EXE_fenced_redis"), env!("CARGO_BIN_EXE_fenced_sql")];
    for (program, url) in programs.into_iter().zip([redis.url(), mariadb.url()]) {
        let told = Running::start(program, &[&url]).rest();
        assert_eq!(told[0], "the next holder: Written", "{told:?}");
        assert!(told[1].starts_with("the late holder: Stale { seen: FencingToken("), "{told:?}");
        assert_eq!(told[2], "the balance is Some(120)", "{told:?}");
    }
}

#[test(multi_thread)]
async fn of_many_hosts_one_does_the_job() {
    let server = redis().await;
    let at = |hosts, time| all_of(hosts, env!("CARGO_BIN_EXE_cron"), &[&server.url(), time]);
    let mut told = at(5, "2026-05-01T03:00");
    told.sort();
    assert_eq!(told.pop().as_deref(), Some("did the job of 2026-05-01T03:00"));
    assert_eq!(told, ["another host has the job of 2026-05-01T03:00"; 4]);
    assert_eq!(at(1, "2026-05-01T03:00"), told[..1], "a host that is late does not do it again");
    assert_eq!(at(1, "2026-05-01T04:00"), ["did the job of 2026-05-01T04:00"]);
}

#[test(multi_thread)]
async fn the_next_replica_leads_after_each() {
    let server = redis().await;
    let start = |name| Running::start(env!("CARGO_BIN_EXE_replica"), &[&server.url(), name]);
    let term = |replica: &Running, name: &str| -> u64 {
        let line = replica.line();
        let term = line.strip_prefix(&format!("{name} leads in term ")).unwrap_or_else(|| panic!("{line}"));
        term.parse().unwrap()
    };
    let first = start("ada");
    let first_term = term(&first, "ada");
    let second = start("ben");
    first.terminate();
    assert_eq!(first.rest(), ["ada resigned"]);
    let second_term = term(&second, "ben");
    let third = start("cay");
    // Killed: it resigns nothing.
    drop(second);
    let third_term = term(&third, "cay");
    assert!(first_term < second_term && second_term < third_term, "{first_term} {second_term} {third_term}");
}

#[test(multi_thread)]
async fn metrics_are_exported_and_a_long_wait_is_logged_with_the_holder() {
    let server = redis().await;
    let address = format!("127.0.0.1:{}", free_port().unwrap());
    let program = Running::start(env!("CARGO_BIN_EXE_monitored"), &[&server.url(), &address]);
    eventually("the exporter listens", async || TcpStream::connect(&address).is_ok()).await;
    for sample in ["acquire_wait_seconds_bucket", "hold_seconds_bucket", "guards", "renewals_total", "contended_total"]
    {
        let sample = format!("\nleasehold_{sample}{{backend=\"redis-single\"");
        eventually(&sample, async || answer(ask(&address, "GET /metrics")).1.contains(&sample)).await;
    }
    let told = std::iter::repeat_with(|| program.line()).find(|line| line.contains("waiting long")).unwrap();
    assert!(told.contains("the work of an example"), "{told}");
}

fn service(server: &Server) -> (Running, String) {
    let service = Running::start(env!("CARGO_BIN_EXE_service"), &[&server.url(), "127.0.0.1:0"]);
    let line = service.line();
    let address = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
    (service, address)
}

#[test(multi_thread)]
async fn visits_of_one_user_are_counted_one_after_the_other() {
    let server = redis().await;
    // Two services on one store would count in two places: the lock is for what they share, so here is one.
    let (service, address) = service(&server);
    let visits: Vec<_> = (0..8).map(|_| ask(&address, "POST /users/ada/visits")).collect();
    let mut visits: Vec<_> = visits.into_iter().map(answer).collect();
    visits.sort();
    let expected: Vec<_> = (1..=8).map(|visit| (200, visit.to_string())).collect();
    assert_eq!(visits, expected);
    let too_long = format!("POST /users/{}/visits", "x".repeat(300));
    assert_eq!(answer(ask(&address, &too_long)).0, 400, "a key has at most 255 bytes");
    service.terminate();
    assert_eq!(service.rest(), ["closed"]);
}

#[test(multi_thread)]
async fn a_request_in_flight_is_answered_before_the_service_ends() {
    let server = redis().await;
    let (mut service, address) = service(&server);
    let locks = leasehold::connect(&server.url()).await.unwrap();
    let held = locks.lock("user/ada").await.unwrap();
    let keys = async || server.ask(&["DBSIZE"]).await.number();
    let before = keys().await;
    let request = ask(&address, "POST /users/ada/visits");
    eventually("the request waits for the lock", async || keys().await > before).await;
    service.terminate();
    eventually("the service accepts no more", async || TcpStream::connect(&address).is_err()).await;
    assert!(service.is_running(), "it has a request to answer");
    held.release().await.unwrap();
    assert_eq!(answer(request), (200, "1".to_owned()));
    assert_eq!(service.rest(), ["closed"]);
    let left = locks.list("", None).await.unwrap();
    assert!(left.keys.is_empty(), "{left:?}");
    locks.close().await;
}
