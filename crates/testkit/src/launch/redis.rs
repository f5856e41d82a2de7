//! Starts Redis: single servers, several of them, a Cluster, Sentinels.

use std::fs;
use std::path::Path;
use std::thread;

use super::place::folder;
use super::process::{Launch, Process, on_a_free_port};
use super::programs::need;
use super::resp::{Answer, ask};
use super::settings::Settings;
use crate::waiting::eventually_some;

/// The program of a Redis server.
pub const PROGRAM: &str = "redis-server";

/// What makes a server the node of a Cluster. Five seconds: on a busy machine a node that is merely late must not count as
/// dead.
pub const CLUSTER_NODE: [&str; 4] = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"];

/// Starts a server without persistence on a free port, in a folder of its own below `parent`, and waits until it answers.
pub fn start(parent: &Path, settings: &Settings) -> Result<Process, String> {
    on_a_free_port(|port| {
        let folder = folder(parent, "redis", port)?;
        let usual = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"];
        let place = ["--port", &port.to_string(), "--dir", &folder.display().to_string()];
        let mut settings = settings.behind(place).behind(usual);
        if settings.arguments.iter().any(|argument| argument == "--sentinel") {
            // A Sentinel keeps its state in its configuration file.
            let file = folder.join("sentinel.conf");
            fs::write(&file, "").map_err(|e| format!("{}: {e}", file.display()))?;
            settings = settings.behind([file.display()]);
        }
        // Any answer will do, since it may want a password, but that it still reads its data.
        let ready = |server: &Process| {
            ask(server.port(), &[["PING"]]).is_ok_and(|answer| !answer.text().starts_with("LOADING"))
        };
        Launch { program: need(PROGRAM)?, settings, port, folder, ready }.start(&[])
    })
}

/// Starts so many servers at the same time, with the same settings.
pub fn start_many(count: usize, parent: &Path, settings: &Settings) -> Result<Vec<Process>, String> {
    thread::scope(|scope| {
        let starting: Vec<_> = (0..count).map(|_| scope.spawn(|| start(parent, settings))).collect();
        let panicked = |_| Err("a thread that starts a server panicked".to_owned());
        starting.into_iter().map(|one| one.join().unwrap_or_else(panicked)).collect()
    })
}

/// Starts a Cluster of three nodes without replicas, and waits until all nodes agree about it.
pub fn start_cluster(parent: &Path) -> Result<Vec<Process>, String> {
    let nodes = start_many(3, parent, &Settings::arguments(CLUSTER_NODE))?;
    let ports: Vec<u16> = nodes.iter().map(Process::port).collect();
    form_cluster(&ports)?;
    Ok(nodes)
}

/// Shares the hash slots out to the first three nodes, in this order, makes each further one the replica of one of them, and
/// waits until all agree.
pub fn form_cluster(ports: &[u16]) -> Result<(), String> {
    let first = ports.first().copied().unwrap_or_default().to_string();
    for (port, (from, to)) in ports.iter().zip([("0", "5460"), ("5461", "10922"), ("10923", "16383")]) {
        expect_ok(*port, &["CLUSTER", "ADDSLOTSRANGE", from, to])?;
        expect_ok(*port, &["CLUSTER", "MEET", "127.0.0.1", &first])?;
    }
    let primaries = ports.iter().take(3).cycle();
    for (replica, primary) in ports.iter().skip(3).zip(primaries) {
        expect_ok(*replica, &["CLUSTER", "MEET", "127.0.0.1", &first])?;
        let primary = ask(*primary, &[["CLUSTER", "MYID"]]).map_err(|e| format!("CLUSTER MYID: {e}"))?;
        eventually_some("the replica knows its primary", || {
            expect_ok(*replica, &["CLUSTER", "REPLICATE", primary.text()]).ok()
        });
    }
    wait_for_cluster(ports);
    Ok(())
}

/// Waits until each of these nodes knows all of them, and serves.
pub fn wait_for_cluster(ports: &[u16]) {
    let known = format!("cluster_known_nodes:{}", ports.len());
    for port in ports {
        eventually_some("the nodes of the Cluster agree", || {
            let info = ask(*port, &[["CLUSTER", "INFO"]]).ok()?;
            (info.text().contains("cluster_state:ok") && info.text().contains(&known)).then_some(())
        });
    }
}

/// The address of a Cluster of these nodes, as the backends take it.
pub fn cluster_url(ports: &[u16]) -> String {
    url_of_all("redis-cluster", ports, "")
}

/// The address of the primary that these Sentinels watch over.
pub fn sentinel_url(ports: &[u16]) -> String {
    url_of_all("redis-sentinel", ports, "sentinelServiceName=main&")
}

fn url_of_all(scheme: &str, ports: &[u16], more: &str) -> String {
    let (first, others) = ports.split_first().map_or((0, ports), |(first, others)| (*first, others));
    let others: Vec<String> = others.iter().map(|port| format!("node=127.0.0.1:{port}")).collect();
    format!("{scheme}://127.0.0.1:{first}?{more}{}", others.join("&"))
}

/// The address of a single server.
pub fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

/// Starts three Sentinels that watch over the primary on this port under the name `main`, and have another server made
/// primary when it was silent for `patience` milliseconds. Waits until they know each other and so many replicas.
pub fn start_sentinels(parent: &Path, primary: u16, replicas: usize, patience: &str) -> Result<Vec<Process>, String> {
    let sentinels = start_many(3, parent, &Settings::arguments(["--sentinel"]))?;
    let primary = primary.to_string();
    for sentinel in &sentinels {
        expect_ok(sentinel.port(), &["SENTINEL", "MONITOR", "main", "127.0.0.1", &primary, "2"])?;
        expect_ok(sentinel.port(), &["SENTINEL", "SET", "main", "down-after-milliseconds", patience])?;
        expect_ok(sentinel.port(), &["SENTINEL", "SET", "main", "failover-timeout", "3000"])?;
    }
    let all = format!("slaves={replicas},sentinels=3");
    for sentinel in &sentinels {
        eventually_some("the Sentinels know each other", || {
            ask(sentinel.port(), &[["INFO", "sentinel"]]).ok()?.text().contains(&all).then_some(())
        });
    }
    Ok(sentinels)
}

fn expect_ok(port: u16, command: &[&str]) -> Result<(), String> {
    match ask(port, &[command]) {
        Ok(Answer::Text(text)) if text == "OK" => Ok(()),
        other => Err(format!("{}: {other:?}", command.join(" "))),
    }
}
