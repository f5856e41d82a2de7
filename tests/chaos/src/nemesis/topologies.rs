//! Faults of servers that belong together: another takes over.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use leasehold_testkit::launch::Process;
use leasehold_testkit::launch::mariadb::follow;
use leasehold_testkit::launch::resp::{Answer, ask};
use leasehold_testkit::within;

use super::scene::{PATIENCE, Scene, key, until};
use super::schedule::Planned;
use crate::stores::{Node, Shape, sql};

/// Has Sentinels make another server primary. The canary is the primary that they name.
pub(super) fn fail_over(scene: &Scene<'_>) -> Result<u64, String> {
    let Shape::Sentinels { watchers, .. } = &scene.store.shape else { return Err("there are no Sentinels".to_owned()) };
    let before = primary(watchers);
    let asks = || ask(watchers[0].port(), &[["SENTINEL", "FAILOVER", "main"]]).is_ok_and(|told| told.text() == "OK");
    // They refuse while the one before is under way.
    agree(asks)?;
    agree(|| primary(watchers) != before)?;
    one_is_primary(&scene.store.nodes)?;
    Ok(1)
}

/// The arguments by which a server that Sentinels watch begins in the role that it has: they write it into its configuration.
pub(super) fn role(scene: &Scene<'_>, node: &Node) -> Vec<String> {
    let (role, watched) = (node.list(&["ROLE"]), matches!(scene.store.shape, Shape::Sentinels { .. }));
    let follows = match &role[..] {
        [what, ..] if watched && what.text() == "master" => "no one".to_owned(),
        [what, _, port, ..] if watched && what.text() == "slave" => format!("127.0.0.1 {}", port.number()),
        _ => return Vec::new(),
    };
    vec!["--replicaof".to_owned(), follows]
}

/// Has a replica take the place of a primary of which it did not receive the last. The canary is how many bytes it lacks.
pub(super) fn fall_behind(scene: &Scene<'_>, lasts: Duration) -> Result<u64, String> {
    let nodes = &scene.store.nodes;
    // A primary that has just begun counts its bytes from zero, and replicas that do not follow it yet have more of the old one.
    agree(|| all_follow(nodes))?;
    let (primaries, replicas): (Vec<&Node>, Vec<&Node>) = nodes.iter().partition(|node| node.is_primary());
    let primary = primaries.first().ok_or("there is no primary")?;
    let has = |node: &Node| node.info("replication", "master_repl_offset");
    for replica in &replicas {
        replica.process().pause();
    }
    // What is on its way to them they would else receive when they go on.
    primary.ask(&["CLIENT", "KILL", "TYPE", "replica"]);
    thread::sleep(lasts);
    let (written, role) = (has(primary), role(scene, primary));
    primary.process().kill();
    for replica in &replicas {
        replica.process().resume();
    }
    let received = replicas.iter().map(|replica| has(replica)).max().unwrap_or(0);
    agree(|| replicas.iter().any(|replica| replica.is_primary()))?;
    primary.revive(&role)?;
    one_is_primary(nodes)?;
    Ok(written.saturating_sub(received))
}

/// Where all replicas confirm, nothing is granted until all of them follow a primary: so long a fault lasts.
pub(super) fn wait_for_replicas(scene: &Scene<'_>) -> Result<(), String> {
    let all_confirm = matches!(scene.store.shape, Shape::Sentinels { all_confirm: true, .. });
    if all_confirm { agree(|| all_follow(&scene.store.nodes)) } else { Ok(()) }
}

/// Whether one is primary, and has all others as its replicas.
fn all_follow(nodes: &[Node]) -> bool {
    let followers = |node: &Node| node.ask(&["INFO", "replication"]).text().matches("state=online").count();
    let primaries: Vec<&Node> = nodes.iter().filter(|node| node.is_primary()).collect();
    matches!(primaries[..], [primary] if followers(primary) + 1 == nodes.len())
}

/// Has a replica in a Cluster take over from the primary of a key: while that runs, or after it was killed. The canary is the
/// role of both.
pub(super) fn cluster_fail_over(scene: &Scene<'_>, planned: &Planned) -> Result<u64, String> {
    let nodes = &scene.store.nodes;
    let slot = slot(scene, planned);
    let holds = |node: &&Node| node.is_primary() && entries(node, &slot) > 0;
    let old = nodes.iter().find(holds).or_else(|| nodes.iter().find(|node| node.is_primary()));
    let old = old.ok_or("there is no primary")?;
    let new = nodes.iter().find(|node| follows(node, old)).ok_or("the primary has no replica")?;
    let killed = planned.choice.is_multiple_of(2);
    if killed {
        old.process().kill();
    }
    let told = new.ask(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
    if killed {
        thread::sleep(planned.lasts / 2);
        old.revive(&[])?;
    }
    // The primary of before takes writes, which are lost, until it is told.
    agree(|| new.is_primary() && follows(old, new)).map_err(|why| format!("{told:?}: {why}"))?;
    let serves = |node: &Node| node.ask(&["CLUSTER", "INFO"]).text().contains("cluster_state:ok");
    agree(|| nodes.iter().all(serves))?;
    Ok(1)
}

/// Whether a node has all that its primary had when it began to follow it.
fn follows(node: &Node, primary: &Node) -> bool {
    let is_its_port = |port: &Answer| port.number() == i64::from(primary.port);
    matches!(&node.list(&["ROLE"])[..], [role, _, port, state, ..]
        if role.text() == "slave" && is_its_port(port) && state.text() == "connected")
}

/// The slot of a key.
fn slot(scene: &Scene<'_>, planned: &Planned) -> String {
    scene.node(planned).ask(&["CLUSTER", "KEYSLOT", &format!("{{leasehold:{}}}", key(planned))]).number().to_string()
}

/// How many entries a node has in a slot.
fn entries(node: &Node, slot: &str) -> i64 {
    node.ask(&["CLUSTER", "COUNTKEYSINSLOT", slot]).number()
}

fn primary(watchers: &[Process]) -> Option<Answer> {
    ask(watchers[0].port(), &[["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"]]).ok()
}

/// Moves the slot of a key to the next node, with all entries that are in it. The canary is their number.
pub(super) fn move_slot(scene: &Scene<'_>, planned: &Planned) -> u64 {
    let slot = slot(scene, planned);
    let nodes: Vec<&Node> = scene.store.nodes.iter().filter(|node| node.is_primary()).collect();
    let Some(at) = nodes.iter().position(|node| entries(node, &slot) > 0) else { return 0 };
    let (source, target) = (nodes[at], nodes[(at + 1) % nodes.len()]);
    let (source_id, target_id) = (source.ask(&["CLUSTER", "MYID"]), target.ask(&["CLUSTER", "MYID"]));
    let port = target.port.to_string();
    target.ask(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", source_id.text()]);
    source.ask(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", target_id.text()]);
    thread::sleep(planned.lasts / 2);
    let mut moved = 0;
    within(PATIENCE, Duration::ZERO, || {
        let names = source.list(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
        for name in &names {
            let answer = source.ask(&["MIGRATE", "127.0.0.1", &port, name.text(), "0", "5000"]);
            moved += u64::from(answer.text() == "OK");
        }
        names.is_empty().then_some(())
    });
    thread::sleep(planned.lasts / 2);
    for node in [target, source].into_iter().chain(nodes) {
        node.ask(&["CLUSTER", "SETSLOT", &slot, "NODE", target_id.text()]);
    }
    moved
}

/// As an operator does it: the old primary takes no writes any more, the new one has all of them, and takes more. The canary
/// is a write that the old one has and the new one got.
pub(super) fn switch_over(scene: &Scene<'_>) -> Result<u64, String> {
    let Shape::Pair { address, primary } = &scene.store.shape else { return Err("there is no replica".to_owned()) };
    let (nodes, at) = (&scene.store.nodes, primary.load(Ordering::Relaxed));
    let (old, new) = (&nodes[at], &nodes[1 - at]);
    let position = sql(old, &["SET GLOBAL read_only = 1", "SELECT @@global.gtid_binlog_pos"])?;
    let position = position.into_iter().next().unwrap_or_default();
    let waits = format!("SELECT CAST(MASTER_GTID_WAIT('{position}', {}) AS CHAR)", PATIENCE.as_secs());
    if sql(new, &[&waits])? != ["0"] {
        return Err("the replica did not follow".to_owned());
    }
    sql(new, &["STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0"])?;
    address.redirect(new.port);
    primary.store(1 - at, Ordering::Relaxed);
    let begins = format!("SET GLOBAL gtid_slave_pos = '{position}'");
    sql(old, &[&begins, &follow(new.port), "START SLAVE"])?;
    Ok(u64::from(!position.is_empty()))
}

/// The primary of before takes writes, which are lost, until it is told.
fn one_is_primary(nodes: &[Node]) -> Result<(), String> {
    agree(|| nodes.iter().filter(|node| node.is_primary()).count() == 1)
}

fn agree(is_so: impl Fn() -> bool) -> Result<(), String> {
    until("the servers agree", || is_so().then_some(()))
}
