//! Faults of the network between clients and a server.

use std::thread;
use std::time::{Duration, Instant};

use leasehold_testkit::{Effects, Proxy};

use super::scene::Scene;
use super::schedule::Planned;
use crate::clients::TTL_MS;
use crate::fault::Fault;

/// Between two replies that are lost, or torn.
const BETWEEN: Duration = Duration::from_millis(50);

/// How late everything is, each way, before a link falls silent.
const LATE: Duration = Duration::from_millis(300);
const LEASE: Duration = Duration::from_millis(TTL_MS);

/// Hits the links of a half of the clients, or of all.
pub(super) fn inflict(scene: &Scene<'_>, planned: &Planned) -> u64 {
    let links = &scene.node(planned).links;
    if planned.fault == Fault::LateThenSilent {
        return late_then_silent(&links[usize::try_from(planned.choice / 64).unwrap_or(0) % links.len()]);
    }
    let choice = usize::try_from(planned.choice / 64).unwrap_or(0) % (links.len() + 1);
    let hit: Vec<&Proxy> = links.get(choice).map_or_else(|| links.iter().collect(), |link| vec![link]);
    let effects = || hit.iter().map(|link| effect(planned.fault, link.effects())).sum::<u64>();
    let before = effects();
    for link in &hit {
        begin(planned, link);
    }
    let end = Instant::now() + planned.lasts;
    while Instant::now() < end {
        for link in &hit {
            match planned.fault {
                Fault::LoseOneReply => link.drop_next_reply(),
                Fault::TearReply => link.tear_next_reply(),
                _ => {}
            }
        }
        thread::sleep(BETWEEN);
    }
    for link in &hit {
        link.heal();
    }
    effects() - before
}

/// A holder on this link that counts its lease from an answer, and not from the request, believes in it for too long; the
/// clients on the others are granted what it had.
fn late_then_silent(link: &Proxy) -> u64 {
    let before = link.effects();
    link.delay(LATE);
    thread::sleep(LATE * 4);
    link.heal();
    link.black_hole_all();
    thread::sleep(LEASE * 2);
    link.heal();
    let after = link.effects();
    let lost = after.lost_requests + after.lost_replies - before.lost_requests - before.lost_replies;
    (after.delayed - before.delayed).min(lost)
}

fn begin(planned: &Planned, link: &Proxy) {
    match planned.fault {
        Fault::BlackHole => link.black_hole_all(),
        Fault::LoseRequests => link.lose_all_requests(),
        Fault::LoseReplies => link.lose_all_replies(),
        Fault::Delay => link.delay(Duration::from_millis(5 + planned.choice % 300)),
        Fault::RefuseConnections => {
            link.refuse(true);
            link.cut();
        }
        Fault::CutConnections => link.cut(),
        _ => {}
    }
}

/// How often this fault had an effect.
fn effect(fault: Fault, seen: Effects) -> u64 {
    match fault {
        Fault::CutConnections => seen.cut,
        Fault::RefuseConnections => seen.refused,
        Fault::BlackHole | Fault::LoseRequests => seen.lost_requests,
        Fault::LoseReplies => seen.lost_replies,
        Fault::LoseOneReply => seen.dropped_replies,
        Fault::TearReply => seen.torn_replies,
        Fault::Delay => seen.delayed,
        _ => 0,
    }
}
