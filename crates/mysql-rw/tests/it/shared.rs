//! The tests that every backend on MySQL or MariaDB has.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_core::Result;
use leasehold_mysql::ConnectionSettings;
use leasehold_mysql_rw::{
    Admin, ErrorKind, LockKey, LockOptions, LockerExt, LossReason, MysqlRw, MysqlRwBackend, MysqlRwBuilder,
    ReleaseOutcome, RwLockerExt, Wait,
};
use leasehold_testkit::mysql::{GrantLog, Subject, steps};

pub(crate) struct Rw;

impl Subject for Rw {
    type Store = MysqlRwBackend;
    type Locks = MysqlRw;
    const TABLE: &'static str = "leasehold_rw";
    const EXPIRY: &'static str = "writer_expires_at";
    const RIGHTS: &'static [&'static str] = &[
        "SELECT, INSERT, UPDATE ON leasehold.leasehold_rw",
        "SELECT, INSERT, UPDATE, DELETE ON leasehold.leasehold_rw_readers",
    ];
    /// A claim, a count of the readers, and a release.
    const CYCLE: u64 = 3;

    async fn connect(settings: ConnectionSettings) -> Result<MysqlRw> {
        MysqlRwBuilder::from(settings).connect().await
    }

    async fn store(settings: ConnectionSettings) -> Result<MysqlRwBackend> {
        MysqlRwBuilder::from(settings).backend().await
    }

    async fn migrate(settings: ConnectionSettings) -> Result<()> {
        MysqlRwBuilder::from(settings).migrate().await
    }

    /// Half of the rows are keys, and half are readers. Each reader that died belongs to a key of its own.
    fn fill(rows: u64, each: u64) -> Vec<String> {
        let name = "CONCAT('leasehold', CHAR(0), 'key/', LPAD(seq, 8, '0'))";
        let half = rows / 2;
        vec![
            format!(
                "INSERT INTO leasehold.leasehold_rw SELECT {name}, IF(seq % {each} = 2, 1000, UNIX_TIMESTAMP() * 16000), 0, 0, IF(seq % {each} = 1, UNHEX(MD5(seq)), NULL), NULL, UTC_TIMESTAMP(6) + INTERVAL 1 DAY, \
                 '2000-01-01', '2000-01-01', '2000-01-01', \
                 NULL, NULL, NULL FROM leasehold.seq_1_to_{half}"
            ),
            format!(
                "INSERT INTO leasehold.leasehold_rw_readers SELECT {name}, UNHEX(MD5(seq)), 1000, \
                 UTC_TIMESTAMP(6) + INTERVAL IF(seq % {each} = 2, -9, IF(seq % {each} = 1, 1, 0)) DAY, \
                 UTC_TIMESTAMP(6), NULL, NULL, 0 FROM leasehold.seq_{half}_to_{rows}"
            ),
        ]
    }

    async fn gc(locks: &MysqlRw, older_than: Duration) -> Result<u64> {
        locks.gc(older_than).await
    }

    async fn more_life(ours: &MysqlRw, theirs: &MysqlRw, key: &str) {
        readers_life(ours, theirs, key).await;
    }

    async fn crowd(clients: &[MysqlRw], key: &str) {
        crowd(clients, key).await;
    }

    async fn take_turn(locks: &MysqlRw, key: &LockKey, options: &LockOptions, round: usize, log: GrantLog<'_>) {
        if round.is_multiple_of(2) {
            let Ok(Some(guard)) = locks.acquire(key, options).await else { return };
            log.write(&guard);
            drop(guard.release().await);
        } else {
            let Ok(Some(guard)) = locks.acquire_read(key, options).await else { return };
            log.write(&guard);
            drop(guard.release().await);
        }
    }
}

leasehold_testkit::shared_tests!(Rw);

/// Checks who is admitted to a free key, a read key and a written key, within a client and across clients.
async fn readers_life(ours: &MysqlRw, theirs: &MysqlRw, key: &str) {
    let first = ours.try_read(key).await.unwrap().expect("free: it can be read");
    let second = theirs.try_read(key).await.unwrap().expect("read: it can be read");
    assert!(second.fencing_token() > first.fencing_token());
    for client in [ours, theirs] {
        assert!(client.try_write(key).await.unwrap().is_none(), "read: it cannot be written");
        assert!(client.try_read(key).await.unwrap().is_some(), "a try to write leaves no mark");
    }
    second.renew().await.unwrap();
    assert_eq!(first.release().await.unwrap(), ReleaseOutcome::Released);
    assert_eq!(second.release().await.unwrap(), ReleaseOutcome::Released);
    let writer = theirs.write(key).await.unwrap();
    for client in [ours, theirs] {
        assert!(client.try_read(key).await.unwrap().is_none(), "written: it cannot be read");
        assert!(client.try_write(key).await.unwrap().is_none(), "written: it cannot be written");
    }
    writer.release().await.unwrap();
    let dies = ours.acquire_read(&LockKey::new(key).unwrap(), &steps::brief()).await.unwrap().expect("it was released");
    let writer = theirs.write(key).await.unwrap();
    assert!(writer.fencing_token() > dies.fencing_token());
    assert_eq!(dies.lost().await, LossReason::Expired);
    writer.release().await.unwrap();
    let evicted = ours.read(key).await.unwrap();
    theirs.force_release(evicted.key()).await.unwrap();
    // Its lease has half a minute left, and a turn of the readers, as one that is far away books it, is over soon.
    let patience = LockOptions::new().wait(Wait::UpTo(Duration::from_secs(15)));
    let last = theirs.acquire(&LockKey::new(key).unwrap(), &patience).await.unwrap();
    let last = last.expect("an evicted reader is in nobody's way");
    assert_eq!(evicted.renew().await.unwrap_err().kind(), ErrorKind::Lost(LossReason::ForceReleased));
    // A guard that is dropped at the end of a process may be released too late.
    last.release().await.unwrap();
}

/// Takes one key by many readers and writers of several clients, and checks that no writer holds it beside anybody.
async fn crowd(clients: &[MysqlRw], key: &str) {
    let inside = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let tokens = Arc::new(Mutex::new(HashSet::new()));
    let mut tasks = tokio::task::JoinSet::new();
    for (number, client) in clients.iter().cycle().take(18).enumerate() {
        let (client, key, inside, tokens) = (client.clone(), key.to_owned(), Arc::clone(&inside), Arc::clone(&tokens));
        tasks.spawn(async move {
            let (readers, writers) = &*inside;
            for _ in 0..5 {
                let token = if number % 3 == 0 {
                    let guard = client.write(key.as_str()).await.unwrap();
                    assert_eq!(writers.fetch_add(1, Ordering::SeqCst), 0, "two writers");
                    assert_eq!(readers.load(Ordering::SeqCst), 0, "a writer beside readers");
                    tokio::task::yield_now().await;
                    writers.fetch_sub(1, Ordering::SeqCst);
                    let token = guard.fencing_token();
                    guard.release().await.unwrap();
                    token
                } else {
                    let guard = client.read(key.as_str()).await.unwrap();
                    readers.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(writers.load(Ordering::SeqCst), 0, "a reader beside a writer");
                    tokio::task::yield_now().await;
                    readers.fetch_sub(1, Ordering::SeqCst);
                    let token = guard.fencing_token();
                    guard.release().await.unwrap();
                    token
                };
                assert!(tokens.lock().unwrap().insert(token), "{token:?} was given twice");
            }
        });
    }
    tasks.join_all().await;
}
