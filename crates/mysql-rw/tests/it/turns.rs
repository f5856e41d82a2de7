//! How readers and writers of different clients take turns. Needs a private server.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may panic, and says what it measured")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_mysql_rw::{MysqlRw, RwLockerExt};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::{Proxy, eventually, test};
use tokio::task::JoinSet;
use tokio::time::sleep;

const HOLD: Duration = Duration::from_millis(100);

/// Writers of several clients that take the key in turn until they are stopped, and count their grants.
struct Writers {
    grants: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

impl Writers {
    async fn start(server: &Server, clients: usize, of_each: usize) -> Self {
        let (grants, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let mut tasks = JoinSet::new();
        for _ in 0..clients {
            let client = MysqlRw::connect(&server.url()).await.unwrap();
            for _ in 0..of_each {
                let (client, grants, over) = (client.clone(), Arc::clone(&grants), Arc::clone(&over));
                tasks.spawn(async move {
                    while !over.load(Ordering::Relaxed) {
                        let guard = client.write("k").await.unwrap();
                        grants.fetch_add(1, Ordering::SeqCst);
                        sleep(HOLD).await;
                        guard.release().await.unwrap();
                    }
                });
            }
        }
        Self { grants, over, tasks }
    }

    fn grants(&self) -> usize {
        self.grants.load(Ordering::SeqCst)
    }

    async fn stop(self) {
        self.over.store(true, Ordering::Relaxed);
        self.tasks.join_all().await;
    }
}

/// How many writers were granted while a client at this address waited to read, for each of several reads.
async fn reads(url: &str, writers: &Writers, times: usize) -> Vec<usize> {
    let client = MysqlRw::connect(url).await.unwrap();
    client.read("another").await.unwrap().release().await.unwrap();
    let mut passed = Vec::new();
    for _ in 0..times {
        let before = writers.grants();
        let reader = client.read_for("k", Duration::from_secs(20)).await.expect("never its turn");
        passed.push(writers.grants() - before);
        reader.release().await.unwrap();
        let seen = before + passed[passed.len() - 1];
        eventually("a writer holds the key again", async || writers.grants() > seen).await;
    }
    passed
}

#[test(multi_thread, server)]
async fn a_reader_waits_for_two_writers_elsewhere_at_most() {
    let server = Server::needed(&[]).await;
    MysqlRw::migrate(&server.url()).await.unwrap();
    let url = server.url();
    let writers = Writers::start(&server, 1, 4).await;
    let alone = reads(&url, &writers, 20).await;
    // Readers of several clients that wait together have their turn together.
    let (one, another, third) =
        tokio::join!(reads(&url, &writers, 7), reads(&url, &writers, 7), reads(&url, &writers, 7));
    writers.stop().await;
    let together = [one, another, third].concat();
    eprintln!("writers before a reader: alone {alone:?}, with others {together:?}");
    assert!(alone.iter().chain(&together).all(|&grants| grants <= 2), "alone {alone:?}, with others {together:?}");
}

#[test(multi_thread, server)]
async fn a_reader_far_away_waits_for_the_writers_of_four_round_trips_besides() {
    let server = Server::needed(&[]).await;
    MysqlRw::migrate(&server.url()).await.unwrap();
    let (address, near) = (Proxy::start(server.port()), server.url());
    let writers = Writers::start(&server, 8, 1).await;
    for round_trip in [20, 60, 120, 240] {
        address.delay(Duration::from_millis(round_trip / 2));
        let far = address.url(&near);
        let alone = reads(&far, &writers, 4).await;
        let (beside, _) = tokio::join!(reads(&far, &writers, 4), reads(&near, &writers, 4));
        eprintln!("writers before a reader {round_trip} ms away: alone {alone:?}, beside a near one {beside:?}");
        let most = 2 + 4 * usize::try_from(round_trip).unwrap() / HOLD.as_millis() as usize;
        // A stall of the machine may cost one reader its turn.
        let longer = alone.iter().chain(&beside).filter(|&&grants| grants > most).count();
        assert!(longer <= 1, "{round_trip} ms away: more than {most}");
    }
    writers.stop().await;
}
