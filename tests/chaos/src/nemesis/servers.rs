//! Faults of servers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::slice::from_ref;
use std::thread;
use std::time::Duration;

use leasehold_core::Clock;
use leasehold_testkit::launch::resp::Answer;
use leasehold_testkit::within;

use super::scene::{Scene, kill_and_revive};
use super::schedule::Planned;
use super::{databases, etcd, topologies};
use crate::fault::Fault;
use crate::stores::{ALL_WRITES, Node, Number, Program, Session, Shim, set_for};

/// An entry of no lock, by which a server that kept its data is told from one that did not.
const MARKER: &str = "chaos marker";

pub(super) fn inflict(scene: &Scene<'_>, planned: &Planned) -> Result<u64, String> {
    let proved = of_any_kind(scene, planned)?;
    topologies::wait_for_replicas(scene)?;
    Ok(proved)
}

fn of_any_kind(scene: &Scene<'_>, planned: &Planned) -> Result<u64, String> {
    let (node, nodes, lasts) = (scene.node(planned), &scene.store.nodes, planned.lasts);
    match (planned.fault, node.program) {
        (Fault::StopServer, _) => stop(&[node], lasts),
        (Fault::StopLeader, _) => stop(&[etcd::leader(nodes)?], lasts),
        (Fault::StopTwoServers, _) => stop(&[node, scene.after(planned, 1)], lasts),
        (Fault::StopAgent, _) => stop(&[scene.agent(planned)?], lasts),
        // That the data of a database are there again is seen from tokens, which would go back. An agent has none.
        (Fault::RestartAgent, _) => kill_and_revive(&[scene.agent(planned)?], lasts),
        (Fault::RestartServer, Program::Redis) => restart(node, planned, Some(&topologies::role(scene, node))),
        (Fault::RestartServer, Program::Etcd) => etcd::restart(nodes, &[node], planned),
        (Fault::RestartServer, _) => kill_and_revive(&[node], lasts),
        (Fault::RestartLeader, _) => etcd::restart(nodes, &[etcd::leader(nodes)?], planned),
        (Fault::RestartAllServers, _) => etcd::restart(nodes, &nodes.iter().collect::<Vec<_>>(), planned),
        (Fault::EmptyServer, _) => {
            let proved = restart(node, planned, None)?;
            scene.setup.repair(&scene.store.direct, scene.runtime)?;
            Ok(proved)
        }
        (Fault::ServerClockAhead, _) => jump(node, planned, 1),
        (Fault::ServerClockBack, _) => jump(node, planned, -1),
        (Fault::SlowDisk, _) => slow(node, planned),
        (Fault::DiskFull, _) => disk_full(node, lasts),
        (Fault::KillConnections, Program::Redis) => Ok(kill_connections(node)),
        (Fault::KillConnections, _) => databases::kill_connections(node),
        (Fault::NoConnectionsLeft, Program::Redis) => no_connections_left(node, lasts),
        (Fault::NoConnectionsLeft, _) => databases::no_connections_left(node, lasts),
        (Fault::FlushScripts, _) => Ok(flush_scripts(node)),
        (Fault::MemoryFull, _) => Ok(memory_full(node, lasts)),
        (Fault::LockedTable, _) => databases::locked_table(node, lasts),
        (Fault::ReadOnly, _) => databases::read_only(node, lasts),
        (Fault::FailOver, _) => topologies::fail_over(scene),
        (Fault::FallBehind, _) => topologies::fall_behind(scene, lasts),
        (Fault::ClusterFailOver, _) => topologies::cluster_fail_over(scene, planned),
        (Fault::MoveSlot, _) => Ok(topologies::move_slot(scene, planned)),
        (Fault::SwitchOver, _) => topologies::switch_over(scene),
        (Fault::ReplaceServer, _) => etcd::replace(scene, node, lasts),
        (Fault::MoveLeader, _) => etcd::move_leader(nodes),
        (Fault::PartLeader, _) => etcd::part_leader(scene, lasts),
        (Fault::Compact, _) => etcd::compact(node),
        (Fault::SpaceUsedUp, _) => etcd::use_space_up(nodes, node, lasts),
        (other, _) => Err(format!("{} is no fault of a server", other.name())),
    }
}

/// The canary is a question that none of them answers, nor a session of before: each session of `PostgreSQL` is a process.
fn stop(nodes: &[&Node], lasts: Duration) -> Result<u64, String> {
    let with_sessions = nodes.iter().filter(|node| node.program == Program::Postgres);
    let mut sessions = with_sessions.map(|node| Session::of_an_operator(node)).collect::<Result<Vec<_>, _>>()?;
    for node in nodes {
        node.process().pause();
    }
    let silent = nodes.iter().all(|node| !node.answers()) && sessions.iter_mut().all(Session::is_silent);
    thread::sleep(lasts);
    for node in nodes {
        node.process().resume();
    }
    Ok(u64::from(silent))
}

/// With its data it comes back in the role that these arguments say.
fn restart(node: &Node, planned: &Planned, keeps_data: Option<&[String]>) -> Result<u64, String> {
    let value = planned.choice.to_string();
    let marked = node.ask(&["SET", MARKER, &value]).text() == "OK";
    let entries = || node.ask(&["DBSIZE"]).number();
    let (process, had) = (node.process().pid(), entries());
    node.process().kill();
    if keeps_data.is_none() {
        node.forget()?;
    }
    thread::sleep(planned.lasts / 2);
    node.revive(keeps_data.unwrap_or_default())?;
    // The node of a Cluster refuses while it looks for the others.
    let answer = || Some(node.ask(&["GET", MARKER])).filter(|answer| !matches!(answer, Answer::Refused(_)));
    let told = || within(Duration::from_secs(5), Duration::from_millis(10), answer);
    // A replica takes no marker, nor does the node of a Cluster that has not its slot.
    let kept = if marked { told() == Some(Answer::Text(value)) } else { had == 0 || entries() > 0 };
    Ok(u64::from(node.process().pid() != process && kept == keeps_data.is_some()))
}

/// The clock stays where it jumps to. The canary is the time that the server tells.
fn jump(node: &Node, planned: &Planned, sign: i64) -> Result<u64, String> {
    let shim = shim(node)?;
    let by = sign * i64::try_from(500 + planned.choice % 4000).unwrap_or(1000);
    let before = ahead_ms(node)?;
    shim.set(Number::AheadMs, shim.get(Number::AheadMs) + by);
    let moved = ahead_ms(node)? - before;
    Ok(u64::from((moved - by).abs() < 400))
}

/// How far the clock of the server is ahead of this machine's.
fn ahead_ms(node: &Node) -> Result<i64, String> {
    let tells = match node.program {
        Program::MariaDb | Program::Postgres => databases::millis(node)?,
        Program::Etcd | Program::Agent => return Err("nothing tells its time".to_owned()),
        Program::Redis => {
            let parts = node.list(&["TIME"]);
            let [seconds, micros] = &parts[..] else { return Err("it tells no time".to_owned()) };
            let number = |part: &Answer| part.text().parse::<i64>().unwrap_or(0);
            number(seconds) * 1000 + number(micros) / 1000
        }
    };
    Ok(tells - i64::try_from(Clock::system().unix_millis()).unwrap_or(0))
}

fn shim(node: &Node) -> Result<&Shim, String> {
    node.shim.as_ref().ok_or_else(|| format!("the clock and the disk of {} are those of the machine", node.name))
}

/// The canary is the count of the library that makes it slow.
fn slow(node: &Node, planned: &Planned) -> Result<u64, String> {
    let micros = i64::try_from(2_000 + planned.choice % 100_000).unwrap_or(2_000);
    Ok(set_for(planned.lasts, from_ref(shim(node)?), (Number::SlowMicros, micros), Number::Slowed))
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
    let refused = set_for(lasts, from_ref(shim(node)?), (Number::Full, ALL_WRITES), Number::Refused);
    node.process().kill();
    node.revive(&[])?;
    Ok(refused)
}
