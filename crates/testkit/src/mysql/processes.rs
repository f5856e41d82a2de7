//! Eight processes on the same keys, killed again and again, while idle rows are collected.

use std::collections::{HashMap, HashSet};
use std::fs::OpenOptions;
use std::process::Stdio;
use std::time::Duration;

use leasehold_core::conformance::shows_nothing;
use leasehold_core::{Clock, FencingToken, LockKey, LockOptions};

use super::grant_log::GrantLog;
use super::steps::migrated;
use super::subject::Subject;
use crate::child::KilledOnDrop;
use crate::harness::this_program;

const URL: &str = "LEASEHOLD_TEST_CHILD_URL";
const LEDGER: &str = "LEASEHOLD_TEST_CHILD_LEDGER";
const PROCESSES: usize = 8;
const RUN: Duration = Duration::from_secs(14);

pub async fn no_token_repeats_or_goes_back<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let mut children: Vec<_> = (0..PROCESSES).map(|_| child(&server.url(), &ledger)).collect();
    let operator = S::connect_to(&server.url()).await.unwrap();

    let clock = Clock::system();
    let end = clock.now().plus(RUN);
    let (mut collected, mut killed) = (0, 0);
    while clock.now() < end {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let place = killed % PROCESSES;
        children[place].end();
        children[place] = child(&server.url(), &ledger);
        killed += 1;
        collected += S::gc(&operator, Duration::ZERO).await.unwrap();
    }
    drop(children);

    let written = std::fs::read_to_string(&ledger).unwrap();
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

fn child(url: &str, ledger: &std::path::Path) -> KilledOnDrop {
    let mut command = this_program("shared::a_child_takes_locks_until_it_is_killed");
    command.env(URL, url).env(LEDGER, ledger).stdout(Stdio::null()).stderr(Stdio::null());
    KilledOnDrop::spawn(&mut command).unwrap()
}

/// Not a test of its own: what the processes do.
pub async fn a_child_takes_locks_until_it_is_killed<S: Subject>() {
    let (Ok(url), Ok(ledger)) = (std::env::var(URL), std::env::var(LEDGER)) else {
        shows_nothing("another test runs it in processes of their own")
    };
    let mut ledger = OpenOptions::new().append(true).create(true).open(ledger).unwrap();
    let locks = S::connect_to(&url).await.unwrap();
    let options = LockOptions::new().ttl(Duration::from_millis(700));
    let clock = Clock::system();
    // Ends by itself too, should nobody be left to kill it.
    let end = clock.now().plus(RUN * 3);
    let mut round = 0;
    while clock.now() < end {
        // Each key is idle for seconds between its uses, so that there is something to collect.
        let key = LockKey::new(format!("k{}", clock.unix_millis() / 700 % 11)).unwrap();
        round += 1;
        S::take_turn(&locks, &key, &options, round, GrantLog::new(&mut ledger)).await;
    }
}
