//! Faults of etcd's members.

use std::thread;
use std::time::Duration;

use leasehold_testkit::Deadline;
use leasehold_testkit::launch::etcd::{control, get, is_healthy, name, post};

use super::scene::Scene;
use super::schedule::Planned;
use crate::fault::Fault;
use crate::stores::etcd::{JOINS, address};
use crate::stores::{Node, Shape};

/// How long members have to agree.
const PATIENCE: Duration = Duration::from_secs(20);
const BETWEEN: Duration = Duration::from_millis(20);

/// An entry of no lock, by which members that kept their data are told from those that did not.
const MARKER: &str = "chaos/marker";

pub(super) fn inflict(scene: &Scene<'_>, node: &Node, planned: &Planned) -> Result<u64, String> {
    let nodes = &scene.store.nodes;
    match planned.fault {
        Fault::RestartServer => restart(nodes, &[node], planned),
        Fault::RestartLeader => restart(nodes, &[leader(nodes)?], planned),
        Fault::RestartAllServers => restart(nodes, &nodes.iter().collect::<Vec<_>>(), planned),
        Fault::ReplaceServer => replace(scene, node, planned.lasts),
        Fault::MoveLeader => move_leader(nodes),
        Fault::PartLeader => part_leader(scene, planned.lasts),
        Fault::Compact => compact(node),
        Fault::SpaceUsedUp => use_space_up(nodes, node, planned.lasts),
        other => Err(format!("{} is no fault of etcd", other.name())),
    }
}

/// The member that says of itself that it leads.
pub(super) fn leader(nodes: &[Node]) -> Result<&Node, String> {
    until("there is a leader", || nodes.iter().find(|node| leads(node)))
}

fn leads(node: &Node) -> bool {
    get(node.port, "metrics").is_ok_and(|metrics| metrics.contains("\netcd_server_is_leader 1"))
}

/// The canary are the processes, and an entry that is there again.
fn restart(nodes: &[Node], hit: &[&Node], planned: &Planned) -> Result<u64, String> {
    let (ports, value) = (ports(nodes), planned.choice.to_string());
    control(&ports, &["put", MARKER, &value])?;
    let before: Vec<u32> = hit.iter().map(|node| node.pid()).collect();
    for node in hit {
        node.kill();
    }
    thread::sleep(planned.lasts / 2);
    hit.iter().try_for_each(|node| node.revive())?;
    all_are_healthy(nodes)?;
    let others = hit.iter().zip(before).all(|(node, before)| node.pid() != before);
    let kept = control(&ports, &["get", MARKER, "--print-value-only"])?.trim() == value;
    Ok(u64::from(others && kept))
}

/// An operator has another member take the place of one that lost its disk: under the old identity it would vote again as if it
/// had promised nothing. The canary is the identity.
fn replace(scene: &Scene<'_>, node: &Node, lasts: Duration) -> Result<u64, String> {
    let Shape::Members { ways } = &scene.store.shape else { return Err("there are no members".to_owned()) };
    let nodes = &scene.store.nodes;
    let way = nodes.iter().zip(ways).find(|(other, _)| other.port == node.port).map(|(_, way)| address(way));
    let way = way.ok_or("the member has no way")?;
    let others: Vec<u16> = ports(nodes).into_iter().filter(|port| *port != node.port).collect();
    let before = id(&others, node)?;
    node.kill();
    node.forget()?;
    thread::sleep(lasts / 2);
    // They refuse while they do not agree who leads.
    let asks = |words: &[&str]| until(words[1], || control(&others, words).ok()).map(drop);
    asks(&["member", "remove", &before])?;
    asks(&["member", "add", &name(node.port), &format!("--peer-urls={way}")])?;
    node.revive_with(&[JOINS.to_owned()])?;
    all_are_healthy(nodes)?;
    Ok(u64::from(id(&others, node)? != before))
}

/// The canary is who leads afterwards.
fn move_leader(nodes: &[Node]) -> Result<u64, String> {
    let old = leader(nodes)?;
    let new = nodes.iter().find(|node| node.port != old.port).ok_or("there is no other member")?;
    control(&[old.port], &["move-leader", &id(&[old.port], new)?])?;
    until("the other member leads", || leads(new).then_some(1))
}

/// The canary is another leader.
fn part_leader(scene: &Scene<'_>, lasts: Duration) -> Result<u64, String> {
    let Shape::Members { ways } = &scene.store.shape else { return Err("there are no members".to_owned()) };
    let nodes = &scene.store.nodes;
    let old = leader(nodes)?;
    let way = nodes.iter().zip(ways).find(|(node, _)| node.port == old.port).map(|(_, way)| way);
    let way = way.ok_or("the leader has no way")?;
    way.black_hole_all();
    let others = || nodes.iter().filter(|node| node.port != old.port);
    let elected = until("another member leads", || others().find(|node| leads(node)).map(|_| 1));
    thread::sleep(lasts);
    way.heal();
    all_are_healthy(nodes)?;
    elected
}

/// The canary is a revision that is asked for in vain.
fn compact(node: &Node) -> Result<u64, String> {
    let status = control(&[node.port], &["endpoint", "status", "--write-out=fields"])?;
    let revision = status.lines().find_map(|line| line.strip_prefix("\"Revision\" : "));
    control(&[node.port], &["compact", revision.ok_or("there is no revision")?])?;
    let asked = control(&[node.port], &["get", MARKER, "--rev=1"]);
    Ok(u64::from(asked.is_err_and(|why| why.contains("has been compacted"))))
}

/// As if the database had its largest size. The canary is an entry that is refused.
fn use_space_up(nodes: &[Node], node: &Node, lasts: Duration) -> Result<u64, String> {
    let ports = ports(nodes);
    let member = u64::from_str_radix(&id(&ports, node)?, 16).map_err(|error| error.to_string())?;
    let alarm = format!(r#"{{"action": "ACTIVATE", "memberID": "{member}", "alarm": "NOSPACE"}}"#);
    post(node.port, "v3/maintenance/alarm", &alarm).map_err(|error| error.to_string())?;
    let refused = control(&ports, &["put", MARKER, "1"]).is_err_and(|why| why.contains("space exceeded"));
    thread::sleep(lasts);
    until("the alarm is over", || control(&ports, &["alarm", "disarm"]).ok())?;
    Ok(u64::from(refused))
}

fn all_are_healthy(nodes: &[Node]) -> Result<(), String> {
    until("all members are healthy", || nodes.iter().all(|node| is_healthy(node.port)).then_some(()))
}

fn ports(nodes: &[Node]) -> Vec<u16> {
    nodes.iter().map(|node| node.port).collect()
}

/// The id of a member, as the members on these ports know it.
fn id(asked: &[u16], node: &Node) -> Result<String, String> {
    let (list, name) = (control(asked, &["member", "list"])?, name(node.port));
    // Such as `8e9e05c52164694d, started, n2379, …`. One that has just joined has no name yet.
    let of_it = |line: &&str| line.split(", ").nth(2) == Some(name.as_str());
    let line = list.lines().find(of_it).and_then(|line| line.split(", ").next());
    line.map(str::to_owned).ok_or_else(|| format!("{name} is no member: {list}"))
}

fn until<T>(what: &str, is_so: impl Fn() -> Option<T>) -> Result<T, String> {
    let deadline = Deadline::after(PATIENCE);
    loop {
        if let Some(found) = is_so() {
            return Ok(found);
        }
        if deadline.is_over() {
            return Err(format!("not within {PATIENCE:?}: {what}"));
        }
        thread::sleep(BETWEEN);
    }
}
