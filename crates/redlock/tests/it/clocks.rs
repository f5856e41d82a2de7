use std::io::{Seek, SeekFrom, Write};
use std::process::Command;
use std::time::Duration;

use leasehold_redlock::core::Health;
use leasehold_redlock::{KIND, Redlock};
use leasehold_testkit::launch::Settings;
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{eventually, needs, test};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::bench::{Nodes, acquire, cycle, lock, once, take, token};

/// A server whose clock the test moves while it runs. It ends when this value is dropped.
struct Jumpy {
    server: Server,
    folder: TempDir,
}

impl Jumpy {
    /// `None`: this machine cannot build the shim, or lacks the server.
    async fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (shim, shift) = (folder.path().join("clockshift.so"), folder.path().join("shift"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/clockshift.c");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(&shim).arg(source).status();
        if !built.is_ok_and(|status| status.success()) {
            return None;
        }
        std::fs::write(&shift, 0_i64.to_ne_bytes()).unwrap();
        let variables = [("LD_PRELOAD", &shim), ("CLOCKSHIFT_FILE", &shift)];
        let variables = variables.map(|(name, file)| format!("{name}={}", file.display())).to_vec();
        let server = Server::start_with(Settings { variables, ..Settings::default() }).await?;
        Some(Self { server, folder })
    }

    fn jump(&self, seconds: i64) {
        let mut shift = std::fs::OpenOptions::new().write(true).open(self.folder.path().join("shift")).unwrap();
        shift.seek(SeekFrom::Start(0)).unwrap();
        shift.write_all(&(seconds * 1_000_000_000).to_ne_bytes()).unwrap();
    }

    async fn seconds(&self) -> i64 {
        match self.server.ask(&["TIME"]).await {
            Answer::List(parts) => parts[0].text().parse().unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
async fn the_clock_of_one_node_breaks_neither_exclusion_nor_the_order_of_tokens() {
    let nodes = needs("redis-server", Nodes::start(4).await);
    let jumpy = needs("compiler for the shim that moves a clock", Jumpy::start().await);
    let urls = || nodes.0.iter().map(Server::url).chain([jumpy.server.url()]);
    let (ours, theirs) = (
        Redlock::builder().nodes(urls()).connect().await.unwrap(),
        Redlock::builder().nodes(urls()).connect().await.unwrap(),
    );
    let mut tokens = vec![cycle(&ours, "k").await];

    let guard = take(&ours, "k").await;
    eventually("the node has it", async || jumpy.server.ask(&["EXISTS", &lock("k")]).await.number() == 1).await;
    let before = jumpy.seconds().await;
    jumpy.jump(3600);
    assert!(jumpy.seconds().await >= before + 3600, "the clock did not jump");
    assert_eq!(jumpy.server.ask(&["EXISTS", &lock("k")]).await.number(), 0, "the jump ended no lease");
    for _ in 0..10 {
        assert!(acquire(&theirs, "k", &once()).await.unwrap().is_none(), "two holders");
        sleep(Duration::from_millis(2)).await;
    }
    guard.renew().await.unwrap();
    assert!(guard.is_held());
    tokens.push(token(&guard));
    guard.release().await.unwrap();

    // The seeds of that node are an hour ahead now, and then an hour behind.
    for shift in [3600, -3600, 0] {
        jumpy.jump(shift);
        tokens.push(cycle(&theirs, "k").await);
        tokens.push(cycle(&ours, "k").await);
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

#[test]
async fn doctor_finds_a_clock_that_is_apart_from_the_others_until_it_is_set() {
    let nodes = needs("redis-server", Nodes::start(2).await);
    let jumpy = needs("compiler for the shim that moves a clock", Jumpy::start().await);
    let urls: Vec<_> = nodes.0.iter().map(Server::url).chain([jumpy.server.url()]).collect();
    let url = format!("redlock:{}", urls.join(","));
    let clocks = async || {
        let found = KIND.examine.unwrap()(&url).await.unwrap();
        found.into_iter().find(|finding| finding.id == "clocks").unwrap()
    };
    assert_eq!(clocks().await.health, Health::Well);
    for seconds in [3, -3] {
        jumpy.jump(seconds);
        let found = clocks().await;
        assert_eq!(found.health, Health::Warning, "{found:?}");
        assert!(found.text.contains(&jumpy.server.port().to_string()) && found.cure.is_some(), "{found:?}");
        jumpy.jump(0);
        assert_eq!(clocks().await.health, Health::Well);
    }
}
