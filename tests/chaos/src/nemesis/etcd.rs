//! Faults of etcd's members.

use std::thread;
use std::time::Duration;

use leasehold_testkit::Proxy;
use leasehold_testkit::launch::etcd::{control, id, is_healthy, leads, name, post};

use super::scene::{Scene, kill_and_revive, until};
use super::schedule::Planned;
use crate::stores::etcd::{JOINS, address};
use crate::stores::{Node, Shape};

/// An entry of no lock, by which members that kept their data are told from those that did not.
const MARKER: &str = "chaos/marker";

/// The member that says of itself that it leads.
pub(super) fn leader(nodes: &[Node]) -> Result<&Node, String> {
    until("there is a leader", || nodes.iter().find(|node| leads(node.port)))
}

/// The canary are the processes, and an entry that is there again.
pub(super) fn restart(nodes: &[Node], hit: &[&Node], planned: &Planned) -> Result<u64, String> {
    let (ports, value) = (ports(nodes), planned.choice.to_string());
    control(&ports, &["put", MARKER, &value])?;
    let others = kill_and_revive(hit, planned.lasts)?;
    all_are_healthy(nodes)?;
    let kept = control(&ports, &["get", MARKER, "--print-value-only"])?.trim() == value;
    Ok(if kept { others } else { 0 })
}

/// An operator has another member take the place of one that lost its disk: under the old identity it would vote again as if it
/// had promised nothing. The canary is the identity.
pub(super) fn replace(scene: &Scene<'_>, node: &Node, lasts: Duration) -> Result<u64, String> {
    let (nodes, way) = (&scene.store.nodes, address(way(scene, node)?));
    let others: Vec<u16> = ports(nodes).into_iter().filter(|port| *port != node.port).collect();
    let before = id(&others, node.port)?;
    node.process().kill();
    node.forget()?;
    thread::sleep(lasts / 2);
    // They refuse while they do not agree who leads.
    let asks = |words: &[&str]| until(words[1], || control(&others, words).ok()).map(drop);
    asks(&["member", "remove", &before])?;
    asks(&["member", "add", &name(node.port), &format!("--peer-urls={way}")])?;
    node.revive(&[JOINS.to_owned()])?;
    all_are_healthy(nodes)?;
    Ok(u64::from(id(&others, node.port)? != before))
}

/// The canary is who leads afterwards.
pub(super) fn move_leader(nodes: &[Node]) -> Result<u64, String> {
    let old = leader(nodes)?;
    let new = nodes.iter().find(|node| node.port != old.port).ok_or("there is no other member")?;
    control(&[old.port], &["move-leader", &id(&[old.port], new.port)?])?;
    until("the other member leads", || leads(new.port).then_some(1))
}

/// The canary is another leader.
pub(super) fn part_leader(scene: &Scene<'_>, lasts: Duration) -> Result<u64, String> {
    let nodes = &scene.store.nodes;
    let old = leader(nodes)?;
    let way = way(scene, old)?;
    way.black_hole_all();
    let others = || nodes.iter().filter(|node| node.port != old.port);
    let elected = until("another member leads", || others().find(|node| leads(node.port)).map(|_| 1));
    thread::sleep(lasts);
    way.heal();
    all_are_healthy(nodes)?;
    elected
}

/// The canary is a revision that is asked for in vain.
pub(super) fn compact(node: &Node) -> Result<u64, String> {
    let status = control(&[node.port], &["endpoint", "status", "--write-out=fields"])?;
    let revision = status.lines().find_map(|line| line.strip_prefix("\"Revision\" : "));
    control(&[node.port], &["compact", revision.ok_or("there is no revision")?])?;
    let asked = control(&[node.port], &["get", MARKER, "--rev=1"]);
    Ok(u64::from(asked.is_err_and(|why| why.contains("has been compacted"))))
}

/// As if the database had its largest size. The canary is an entry that is refused.
pub(super) fn use_space_up(nodes: &[Node], node: &Node, lasts: Duration) -> Result<u64, String> {
    let ports = ports(nodes);
    let member = u64::from_str_radix(&id(&ports, node.port)?, 16).map_err(|error| error.to_string())?;
    let alarm = format!(r#"{{"action": "ACTIVATE", "memberID": "{member}", "alarm": "NOSPACE"}}"#);
    post(node.port, "v3/maintenance/alarm", &alarm).map_err(|error| error.to_string())?;
    let refused = control(&ports, &["put", MARKER, "1"]).is_err_and(|why| why.contains("space exceeded"));
    thread::sleep(lasts);
    until("the alarm is over", || control(&ports, &["alarm", "disarm"]).ok())?;
    Ok(u64::from(refused))
}

/// The way over which the others hear a member.
fn way<'s>(scene: &'s Scene<'_>, node: &Node) -> Result<&'s Proxy, String> {
    let Shape::Members { ways } = &scene.store.shape else { return Err("there are no members".to_owned()) };
    let of_it = scene.store.nodes.iter().zip(ways).find(|(other, _)| other.port == node.port);
    of_it.map(|(_, way)| way).ok_or_else(|| "the member has no way".to_owned())
}

fn all_are_healthy(nodes: &[Node]) -> Result<(), String> {
    until("all members are healthy", || nodes.iter().all(|node| is_healthy(node.port)).then_some(()))
}

fn ports(nodes: &[Node]) -> Vec<u16> {
    nodes.iter().map(|node| node.port).collect()
}
