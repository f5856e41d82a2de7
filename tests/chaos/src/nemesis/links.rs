//! Faults of the network between clients and a server.

use std::thread;
use std::time::{Duration, Instant};

use leasehold_testkit::{Effects, Proxy};

use super::scene::Scene;
use super::schedule::Planned;
use crate::fault::Fault;
use crate::stores::LINKS;

/// Between two replies that are lost, or torn.
const BETWEEN: Duration = Duration::from_millis(50);

/// How late everything is, each way, before a link falls silent.
const LATE: Duration = Duration::from_millis(300);

/// Hits the links of a half of the clients, or of all.
pub(super) fn inflict(scene: &Scene<'_>, planned: &Planned) -> u64 {
    let choice = usize::try_from(planned.choice / 64).unwrap_or(0);
    let nodes = scene.out_of_reach(planned);
    if planned.fault == Fault::LateThenSilent {
        let links: Vec<&Proxy> = nodes.iter().map(|node| &node.links[choice % LINKS]).collect();
        return late_then_silent(&links, scene.setup.ttl);
    }
    let links = nodes.iter().flat_map(|node| node.links.iter().enumerate());
    let chosen = |number: usize| choice % (LINKS + 1) == LINKS || choice % (LINKS + 1) == number;
    let hit: Vec<&Proxy> = links.filter(|(number, _)| chosen(*number)).map(|(_, link)| link).collect();
    let (begin, again, seen) = how(planned.fault);
    let effects = || hit.iter().map(|link| seen(link.effects())).sum::<u64>();
    let before = effects();
    for link in &hit {
        begin(link, planned.choice);
    }
    let end = Instant::now() + planned.lasts;
    while Instant::now() < end {
        for link in &hit {
            again(link);
        }
        thread::sleep(BETWEEN);
    }
    for link in &hit {
        link.heal();
    }
    effects() - before
}

/// A holder on these links that counts its lease from an answer, and not from the request, believes in it for too long; the
/// clients on the others are granted what it had.
fn late_then_silent(links: &[&Proxy], lease: Duration) -> u64 {
    let each = |what: &dyn Fn(&Proxy)| links.iter().for_each(|link| what(link));
    let seen = |what: &dyn Fn(Effects) -> u64| links.iter().map(|link| what(link.effects())).sum::<u64>();
    let delayed = || seen(&|effects| effects.delayed);
    let lost = || seen(&|effects| effects.lost_requests + effects.lost_replies);
    let before = (delayed(), lost());
    each(&|link| link.delay(LATE));
    thread::sleep(LATE * 4);
    each(&Proxy::heal);
    each(&Proxy::black_hole_all);
    thread::sleep(lease * 2);
    each(&Proxy::heal);
    (delayed() - before.0).min(lost() - before.1)
}

/// How a fault is begun on a link, with a choice; what is done again and again until it is over; how often it had an effect.
type How = (fn(&Proxy, u64), fn(&Proxy), fn(Effects) -> u64);

const NOTHING: fn(&Proxy) = |_| {};

fn how(fault: Fault) -> How {
    match fault {
        Fault::CutConnections => (|link, _| link.cut(), NOTHING, |seen| seen.cut),
        Fault::RefuseConnections => (refuse, NOTHING, |seen| seen.refused),
        // Who is on his way back to MariaDB, which speaks first, has sent nothing yet.
        Fault::BlackHole => (|link, _| link.black_hole_all(), NOTHING, |seen| seen.lost_requests + seen.lost_replies),
        Fault::LoseRequests => (|link, _| link.lose_all_requests(), NOTHING, |seen| seen.lost_requests),
        Fault::LoseReplies => (|link, _| link.lose_all_replies(), NOTHING, |seen| seen.lost_replies),
        Fault::LoseOneReply => (|_, _| {}, Proxy::drop_next_reply, |seen| seen.dropped_replies),
        Fault::TearReply => (|_, _| {}, Proxy::tear_next_reply, |seen| seen.torn_replies),
        Fault::Delay => (delay, NOTHING, |seen| seen.delayed),
        _ => (|_, _| {}, NOTHING, |_| 0),
    }
}

fn refuse(link: &Proxy, _: u64) {
    link.refuse(true);
    link.cut();
}

fn delay(link: &Proxy, choice: u64) {
    link.delay(Duration::from_millis(5 + choice % 300));
}
