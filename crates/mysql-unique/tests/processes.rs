//! Eight processes on the same keys, killed again and again, while idle rows are collected.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leasehold_mysql::testing::Server;
use leasehold_mysql_unique::{Clock, FencingToken, LockKey, LockOptions, Locker, MysqlUnique};

const URL: &str = "LEASEHOLD_TEST_CHILD_URL";
const LEDGER: &str = "LEASEHOLD_TEST_CHILD_LEDGER";
const PROCESSES: usize = 8;
const RUN: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread")]
async fn no_token_repeats_or_goes_back() {
    let Some(server) = Server::start_or_skip(&[]).await else { return };
    MysqlUnique::migrate(&server.url()).await.unwrap();
    let folder = std::env::temp_dir().join(format!("leasehold-ledger-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir(&folder).unwrap();
    let ledger = folder.join("ledger");
    let mut children: Vec<_> = (0..PROCESSES).map(|_| child(&server.url(), &ledger)).collect();
    let operator = MysqlUnique::connect(&server.url()).await.unwrap();

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
    let mut grants = 0;
    for line in written.lines() {
        // Whoever was killed while it wrote left a line without an end.
        let Some((key, token)) = line.strip_suffix('.').and_then(|line| line.split_once(' ')) else { continue };
        let token = FencingToken::from(token.parse::<u64>().unwrap());
        if let Some(before) = newest.insert(key, token) {
            assert!(token > before, "{key}: {token} after {before}");
        }
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
    let locks = MysqlUnique::connect(&url).await.unwrap();
    let options = LockOptions::new().ttl(Duration::from_millis(700));
    let clock = Clock::system();
    // Ends by itself too, should nobody be left to kill it.
    let end = clock.now().plus(RUN * 3);
    while clock.now() < end {
        // Each key is idle for seconds between its uses, so that there is something to collect.
        let key = LockKey::new(format!("k{}", clock.unix_millis() / 700 % 5)).unwrap();
        let Some(guard) = locks.acquire(&key, &options).await.unwrap() else { continue };
        let token = guard.fencing_token().unwrap();
        // Written while held, so the order of the lines is the order of the grants.
        if guard.is_held() {
            ledger.write_all(format!("{key} {token}.\n").as_bytes()).unwrap();
        }
        drop(guard.release().await);
    }
}
