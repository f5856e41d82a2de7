//! Faults of servers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use leasehold_core::Clock;
use leasehold_testkit::Deadline;
use leasehold_testkit::launch::resp::Answer;

use super::scene::Scene;
use super::schedule::Planned;
use super::{etcd, mariadb, postgres, topologies};
use crate::fault::Fault;
use crate::stores::{Full, Node, Program};

/// An entry of no lock, by which a server that kept its data is told from one that did not.
const MARKER: &str = "chaos marker";

pub(super) fn inflict(scene: &Scene<'_>, planned: &Planned) -> Result<u64, String> {
    let proved = of_any_kind(scene, planned)?;
    topologies::wait_for_replicas(scene)?;
    Ok(proved)
}

fn of_any_kind(scene: &Scene<'_>, planned: &Planned) -> Result<u64, String> {
    let node = scene.node(planned);
    match (planned.fault, node.program) {
        (Fault::StopServer, Program::Redis | Program::MariaDb | Program::Etcd) => Ok(stop(&[node], planned.lasts)),
        (Fault::StopLeader, _) => Ok(stop(&[etcd::leader(&scene.store.nodes)?], planned.lasts)),
        (Fault::StopTwoServers, _) => Ok(stop(&[node, scene.next_to(planned)], planned.lasts)),
        (Fault::StopAgent, _) => Ok(stop(&[scene.agent(planned)?], planned.lasts)),
        (Fault::RestartAgent, _) => restart_without_data(scene.agent(planned)?, planned.lasts),
        (Fault::ServerClockAhead, _) => jump(scene, node, planned, 1),
        (Fault::ServerClockBack, _) => jump(scene, node, planned, -1),
        (Fault::SlowDisk, _) => slow(node, planned),
        (Fault::FailOver, _) => topologies::fail_over(scene),
        (Fault::FallBehind, _) => topologies::fall_behind(scene, planned.lasts),
        (Fault::ClusterFailOver, _) => topologies::cluster_fail_over(scene, planned),
        (Fault::MoveSlot, _) => Ok(topologies::move_slot(scene, planned)),
        (Fault::SwitchOver, _) => topologies::switch_over(scene),
        (Fault::RestartServer, Program::Redis) => restart(node, planned, Some(&topologies::role(scene, node))),
        (_, Program::Etcd) if planned.fault != Fault::DiskFull => etcd::inflict(scene, node, planned),
        (Fault::RestartServer, _) => restart_without_data(node, planned.lasts),
        (Fault::DiskFull, _) => disk_full(node, planned.lasts),
        (_, Program::MariaDb) => mariadb::inflict(scene, node, planned),
        (_, Program::Postgres) => postgres::inflict(scene, node, planned),
        (Fault::EmptyServer, _) => {
            let proved = restart(node, planned, None)?;
            if let Some(repair) = scene.setup.repair {
                scene.runtime.block_on(repair(&scene.store.direct))?;
            }
            Ok(proved)
        }
        (Fault::KillConnections, _) => Ok(kill_connections(node)),
        (Fault::NoConnectionsLeft, _) => no_connections_left(node, planned.lasts),
        (Fault::FlushScripts, _) => Ok(flush_scripts(node)),
        (Fault::MemoryFull, _) => Ok(memory_full(node, planned.lasts)),
        (other, Program::Redis | Program::Etcd | Program::Agent) => {
            Err(format!("{} is no fault of Redis", other.name()))
        }
    }
}

/// The canary is a question that none of them answers.
fn stop(nodes: &[&Node], lasts: Duration) -> u64 {
    for node in nodes {
        node.pause();
    }
    let silent = nodes.iter().all(|node| !node.answers());
    thread::sleep(lasts);
    for node in nodes {
        node.resume();
    }
    u64::from(silent)
}

/// With its data it comes back in the role that these arguments say.
fn restart(node: &Node, planned: &Planned, keeps_data: Option<&[String]>) -> Result<u64, String> {
    let value = planned.choice.to_string();
    let marked = node.ask(&["SET", MARKER, &value]).text() == "OK";
    let entries = || node.ask(&["DBSIZE"]).number();
    let (process, had) = (node.pid(), entries());
    node.kill();
    if keeps_data.is_none() {
        node.forget()?;
    }
    thread::sleep(planned.lasts / 2);
    node.revive_with(keeps_data.unwrap_or_default())?;
    // The node of a Cluster refuses while it looks for the others.
    let deadline = Deadline::after(Duration::from_secs(5));
    while marked && matches!(node.ask(&["GET", MARKER]), Answer::Refused(_)) && !deadline.is_over() {
        thread::sleep(Duration::from_millis(10));
    }
    // A replica takes no marker, nor does the node of a Cluster that has not its slot.
    let kept = if marked { node.ask(&["GET", MARKER]) == Answer::Text(value) } else { had == 0 || entries() > 0 };
    Ok(u64::from(node.pid() != process && kept == keeps_data.is_some()))
}

/// That the data of a database are there again is seen from tokens, which would go back. An agent has none.
fn restart_without_data(node: &Node, lasts: Duration) -> Result<u64, String> {
    let before = node.pid();
    node.kill();
    thread::sleep(lasts / 2);
    node.revive()?;
    Ok(u64::from(node.pid() != before))
}

/// The clock stays where it jumps to. The canary is the time that the server tells.
fn jump(scene: &Scene<'_>, node: &Node, planned: &Planned, sign: i64) -> Result<u64, String> {
    let shim = node.shim.as_ref().ok_or("the clock of this server cannot be moved")?;
    let by = sign * i64::try_from(500 + planned.choice % 4000).unwrap_or(1000);
    let before = ahead_ms(scene, node)?;
    shim.set_ahead_ms(shim.ahead_ms() + by);
    let moved = ahead_ms(scene, node)? - before;
    Ok(u64::from((moved - by).abs() < 400))
}

/// How far the clock of the server is ahead of this machine's.
fn ahead_ms(scene: &Scene<'_>, node: &Node) -> Result<i64, String> {
    let tells = match node.program {
        Program::MariaDb => mariadb::millis(scene, node)?,
        Program::Postgres => postgres::millis(scene, node)?,
        Program::Etcd | Program::Agent => return Err("nothing tells its time".to_owned()),
        Program::Redis => match node.ask(&["TIME"]) {
            Answer::List(parts) => {
                let number = |at: usize| parts.get(at).and_then(|part| part.text().parse::<i64>().ok()).unwrap_or(0);
                number(0) * 1000 + number(1) / 1000
            }
            other => return Err(format!("TIME: {other:?}")),
        },
    };
    Ok(tells - i64::try_from(Clock::system().unix_millis()).unwrap_or(0))
}

/// The canary is the count of the library that makes it slow.
fn slow(node: &Node, planned: &Planned) -> Result<u64, String> {
    let shim = node.shim.as_ref().ok_or("the disk of this server cannot be slowed down")?;
    let before = shim.slowed();
    shim.set_slow_micros(i64::try_from(2_000 + planned.choice % 100_000).unwrap_or(2_000));
    thread::sleep(planned.lasts);
    shim.set_slow_micros(0);
    Ok(shim.slowed() - before)
}

fn kill_connections(node: &Node) -> u64 {
    let kill = |kind: &str| node.ask(&["CLIENT", "KILL", "TYPE", kind]).number();
    u64::try_from(kill("normal") + kill("pubsub")).unwrap_or(0)
}

/// Over one connection, because another one would not be let in. The canary is one that is not.
fn no_connections_left(node: &Node, lasts: Duration) -> Result<u64, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut inside = TcpStream::connect(("127.0.0.1", node.port)).map_err(failed)?;
    inside.set_read_timeout(Some(Duration::from_secs(2))).map_err(failed)?;
    let mut say = |line: &str| inside.write_all(line.as_bytes()).and_then(|()| inside.read_exact(&mut [0; 5]));
    say("CONFIG SET maxclients 1\r\n").map_err(failed)?;
    for link in &node.links {
        link.cut();
    }
    thread::sleep(lasts);
    let refused = node.ask(&["PING"]).text().contains("max number of clients");
    say("CONFIG SET maxclients 10000\r\n").map_err(failed)?;
    Ok(u64::from(refused))
}

/// The canary is the number of scripts that there were.
fn flush_scripts(node: &Node) -> u64 {
    let cached = node.info("memory", "number_of_cached_scripts");
    node.ask(&["SCRIPT", "FLUSH"]);
    cached
}

/// The canary is an entry that is refused.
fn memory_full(node: &Node, lasts: Duration) -> u64 {
    node.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let refused = node.ask(&["SET", MARKER, "1"]).text().starts_with("OOM");
    thread::sleep(lasts);
    node.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    u64::from(refused)
}

/// A server that promises that its data survive ends when it cannot write them. The canary is the count of the library that
/// fills the disk.
fn disk_full(node: &Node, lasts: Duration) -> Result<u64, String> {
    let shim = node.shim.as_ref().ok_or("the disk of this server cannot be filled")?;
    let before = shim.refused();
    shim.set_full(Full::AllWrites);
    thread::sleep(lasts);
    shim.set_full(Full::Nothing);
    node.kill();
    node.revive()?;
    Ok(shim.refused() - before)
}
