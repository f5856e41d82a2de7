//! Redis: one server, five for a quorum, three in a cluster.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::time::Duration;

use super::ports::free_port;
use super::process::Process;
use super::{Running, Service, Site};
use crate::install;

/// One Redis server.
#[derive(Debug)]
pub(super) struct Redis;

/// Five Redis servers that know nothing of each other.
#[derive(Debug)]
pub(super) struct Redlock;

/// A Redis Cluster of three nodes without replicas.
#[derive(Debug)]
pub(super) struct RedisCluster;

impl Service for Redis {
    fn variable(&self) -> &'static str {
        "LEASEHOLD_TEST_REDIS"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["redis-server"]
    }

    fn start(&self, site: &Site) -> Result<Running, String> {
        let processes = nodes(1, site, &[])?;
        Ok(Running { url: format!("redis://{}", addresses(&processes).join("")), processes })
    }
}

impl Service for Redlock {
    fn variable(&self) -> &'static str {
        "LEASEHOLD_TEST_REDLOCK"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["redis-server"]
    }

    fn start(&self, site: &Site) -> Result<Running, String> {
        let processes = nodes(5, site, &[])?;
        let urls: Vec<String> = addresses(&processes).iter().map(|address| format!("redis://{address}")).collect();
        Ok(Running { url: urls.join(","), processes })
    }
}

impl Service for RedisCluster {
    fn variable(&self) -> &'static str {
        "LEASEHOLD_TEST_REDIS_CLUSTER"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["redis-server", "redis-cli"]
    }

    fn start(&self, site: &Site) -> Result<Running, String> {
        // Five seconds: on a busy machine a node that is merely late must not count as dead.
        let mut processes = nodes(3, site, &["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"])?;
        let addresses = addresses(&processes);
        let redis_cli = install::find("redis-cli").ok_or("redis-cli is not installed")?;
        let created = Command::new(redis_cli)
            .args(["--cluster", "create"])
            .args(&addresses)
            .args(["--cluster-replicas", "0", "--cluster-yes"])
            .output()
            .map_err(|e| format!("redis-cli: {e}"))?;
        if !created.status.success() {
            let printed = [created.stdout, created.stderr].concat();
            return Err(format!("redis-cli --cluster create: {}", String::from_utf8_lossy(&printed)));
        }
        for node in &mut processes {
            node.wait_until(|port| answers(port, "CLUSTER INFO", "cluster_state:ok"))?;
        }
        let [first, others @ ..] = addresses.as_slice() else { return Err("a cluster of no nodes".into()) };
        let others: Vec<String> = others.iter().map(|address| format!("node={address}")).collect();
        Ok(Running { url: format!("redis-cluster://{first}?{}", others.join("&")), processes })
    }
}

/// Starts all, then waits for all.
fn nodes(count: usize, site: &Site, extra: &[&str]) -> Result<Vec<Process>, String> {
    let mut nodes: Vec<Process> = (0..count).map(|_| node(site, extra)).collect::<Result<_, _>>()?;
    for node in &mut nodes {
        node.wait_until(|port| answers(port, "PING", "+PONG"))?;
    }
    Ok(nodes)
}

fn node(site: &Site, extra: &[&str]) -> Result<Process, String> {
    let program = install::find("redis-server").ok_or("redis-server is not installed")?;
    let port = free_port()?;
    let folder = site.folder.join(format!("redis-{port}"));
    fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (port_text, folder_text) = (port.to_string(), folder.display().to_string());
    let arguments: Vec<String> = ["--port", &port_text, "--bind", "127.0.0.1", "--dir", &folder_text]
        .into_iter()
        .chain(["--save", "", "--appendonly", "no", "--daemonize", "no"])
        .chain(extra.iter().copied())
        .map(str::to_owned)
        .collect();
    Process::start(site.lifetime, &program, &arguments, port, &folder)
}

fn addresses(nodes: &[Process]) -> Vec<String> {
    nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect()
}

/// Whether a server's answer to `question` holds `expected`.
fn answers(port: u16, question: &str, expected: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(format!("{question}\r\nQUIT\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains(expected))
}
