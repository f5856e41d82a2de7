//! Eight processes on the same keys, killed again and again, while idle rows are collected.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leasehold_mysql::testing::Server;
use leasehold_mysql_rw::{Clock, FencingToken, Guard, GuardMode, LockKey, LockOptions, Locker, MysqlRw, RwLocker};

const URL: &str = "LEASEHOLD_TEST_CHILD_URL";
const LEDGER: &str = "LEASEHOLD_TEST_CHILD_LEDGER";
const PROCESSES: usize = 8;
const RUN: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread")]
async fn no_token_repeats_or_goes_back() {
    let Some(server) = Server::start_or_skip(&[]).await else { return };
    MysqlRw::migrate(&server.url()).await.unwrap();
    let folder = std::env::temp_dir().join(format!("leasehold-ledger-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir(&folder).unwrap();
    let ledger = folder.join("ledger");
    let mut children: Vec<_> = (0..PROCESSES).map(|_| child(&server.url(), &ledger)).collect();
    let operator = MysqlRw::connect(&server.url()).await.unwrap();

    let clock = Clock::system();
    let end = clock.now().plus(RUN);
    let (mut collected, mut killed) = (0, 0);
    while clock.now() < end {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let place = killed % PROCESSES;
        children[place].kill().unwrap();
        children[place].wait().unwrap();
        children[place] = child(&server.url(), &ledger);
        killed += 1;
        collected += operator.gc(Duration::from_secs(1)).await.unwrap();
    }
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    let written = std::fs::read_to_string(&ledger).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let mut newest: HashMap<&str, FencingToken> = HashMap::new();
    let mut newest_of_writers: HashMap<&str, FencingToken> = HashMap::new();
    let mut seen = HashSet::new();
    let mut grants = 0;
    for line in written.lines() {
        // Whoever was killed while it wrote left a line without an end.
        let Some(line) = line.strip_suffix('.') else { continue };
        let [key, mode, token] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let token = FencingToken::from(token.parse::<u64>().unwrap());
        assert!(seen.insert((key, token)), "{key}: {token} was given twice");
        // Readers stand side by side and may write in any order, but a writer comes after all before it.
        let before = if mode == "w" { newest.get(key) } else { newest_of_writers.get(key) };
        assert!(before.is_none_or(|before| token > *before), "{key} {mode}: {token} after {before:?}");
        if mode == "w" {
            newest_of_writers.insert(key, token);
        }
        let newest = newest.entry(key).or_insert(token);
        *newest = token.max(*newest);
        grants += 1;
    }
    assert!(grants > 100 && killed > 10 && collected > 0, "{grants} grants, {killed} kills, {collected} collected");
}

fn child(url: &str, ledger: &std::path::Path) -> Child {
    let arguments = ["--exact", "a_child_takes_locks_until_it_is_killed", "--ignored"];
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments).env(URL, url).env(LEDGER, ledger).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Not a test of its own: what the processes do.
#[tokio::test]
#[ignore = "the other test runs it in processes of their own"]
async fn a_child_takes_locks_until_it_is_killed() {
    let (Ok(url), Ok(ledger)) = (std::env::var(URL), std::env::var(LEDGER)) else { return };
    let mut ledger = OpenOptions::new().append(true).create(true).open(ledger).unwrap();
    let locks = MysqlRw::connect(&url).await.unwrap();
    let options = LockOptions::new().ttl(Duration::from_millis(700));
    let clock = Clock::system();
    // Ends by itself too, should nobody be left to kill it.
    let end = clock.now().plus(RUN * 3);
    let mut round = 0;
    while clock.now() < end {
        // Each key is idle for seconds between its uses, so that there is something to collect.
        let key = LockKey::new(format!("k{}", clock.unix_millis() / 700 % 5)).unwrap();
        round += 1;
        if round % 2 == 0 {
            let Some(guard) = locks.acquire(&key, &options).await.unwrap() else { continue };
            note(&mut ledger, &guard, "w");
            drop(guard.release().await);
        } else {
            let Some(guard) = locks.acquire_read(&key, &options).await.unwrap() else { continue };
            note(&mut ledger, &guard, "r");
            drop(guard.release().await);
        }
    }
}

/// Written while held, so the order of the lines is the order of the grants.
fn note<M: GuardMode>(ledger: &mut File, guard: &Guard<M>, mode: &str) {
    if guard.is_held() {
        let line = format!("{} {mode} {}.\n", guard.key(), guard.fencing_token().unwrap());
        ledger.write_all(line.as_bytes()).unwrap();
    }
}
