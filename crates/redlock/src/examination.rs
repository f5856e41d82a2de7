use std::time::Duration;

use futures::future::{join, join_all};
use leasehold_core::clock::Moment;
use leasehold_core::{Finding, Result};
use leasehold_redis::{Endpoint, Form, Identity, Needs, Source, identify};

/// What `doctor` looks for on each node.
const NEEDS: Needs = Needs {
    commands: &["eval", "evalsha", "get", "mget", "set", "del", "pttl", "pexpire", "time"],
    spare: &["publish", "subscribe", "unsubscribe", "ping", "scan", "info", "type"],
    parts: &[("lock", Form::Entry), ("fence", Form::Counter("")), ("forced", Form::Text)],
};

/// How far the clocks of two nodes may be apart. From a second on, no epoch that is ahead of one clock and not far ahead of the
/// other is found at once.
const APART: Duration = Duration::from_millis(500);

/// A node: its address without credentials, and what it said of itself.
type Known = (String, Identity);

/// Checks each node by itself, and the nodes beside each other. What a node that does not answer says is left to
/// [`node_states`](crate::Redlock::node_states).
pub(crate) async fn examine(url: &str) -> Result<Vec<Finding>> {
    let nodes: Vec<&str> = url.strip_prefix("redlock:").unwrap_or(url).split(',').collect();
    let mut findings = vec![count(nodes.len())];
    // At the same time: a node that is silent is waited for once.
    let each = nodes.iter().map(|node| join(leasehold_redis::examine(node, &NEEDS), identify(node)));
    let mut known = Vec::new();
    for (node, (found, identity)) in nodes.iter().zip(join_all(each).await) {
        findings.extend(found.unwrap_or_default());
        if let (Ok(identity), Ok(endpoint)) = (identity, Endpoint::of(&Source::Url((*node).to_owned()))) {
            known.push((endpoint.to_string(), identity));
        }
    }
    findings.extend(same_servers(&known));
    findings.extend(clocks(&known));
    Ok(findings)
}

fn count(nodes: usize) -> Finding {
    let few = format!("{nodes} nodes");
    let finding = |why: &str| Finding::error("node-count", format!("{few} {why}"));
    match nodes {
        0..3 => finding("survive the loss of none").cure("name three or five independent servers"),
        _ if nodes.is_multiple_of(2) => {
            finding("survive no more losses than one fewer").cure("leave out one node, or add one")
        }
        _ => Finding::well("node-count", format!("{few}, of which {} may be down", (nodes - 1) / 2)),
    }
}

/// The pairs of addresses at which the same server answers.
fn same_servers(known: &[Known]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (position, (node, identity)) in known.iter().enumerate() {
        let same = |(_, other): &&Known| !identity.run.is_empty() && other.run == identity.run;
        if let Some((other, _)) = known[..position].iter().find(same) {
            let text = format!("{node} is the same server as {other}: their votes are one vote");
            findings.push(Finding::error("same-server", text).cure(format!("name another server in place of {node}")));
        }
    }
    findings
}

/// Whether the clocks of all nodes show about the same.
fn clocks(known: &[Known]) -> Option<Finding> {
    let bounds = |(_, identity): &Known| ahead(identity);
    let earliest = known.iter().max_by_key(|known| bounds(known).0)?;
    let latest = known.iter().min_by_key(|known| bounds(known).1)?;
    // By so much at least, whenever in the round trips the clocks were read.
    let apart = bounds(earliest).0.saturating_sub(bounds(latest).1);
    let apart = Duration::from_micros(u64::try_from(apart).unwrap_or(0));
    Some(if apart > APART {
        let text = format!("the clock of {} is {apart:.1?} or more ahead of that of {}", earliest.0, latest.0);
        Finding::warning("clocks", text).cure("chronyc makestep, on each node")
    } else {
        Finding::well("clocks", "the clocks of the nodes agree")
    })
}

/// By how many µs the clock of a node is ahead of ours, at least and at most.
fn ahead(identity: &Identity) -> (i128, i128) {
    let (clock, sent, received) = identity.clock;
    let since = |moment: Moment| i128::try_from(moment.since(Moment::default()).as_micros()).unwrap_or(i128::MAX);
    (i128::from(clock) - since(received), i128::from(clock) - since(sent))
}

#[cfg(test)]
mod tests {
    use leasehold_core::Health;
    use leasehold_testkit::redis::LeastUser;

    use super::*;

    fn node(name: &str, run: &str, clock: u64, trip: u64) -> Known {
        let at = |ms| Moment::default().plus(Duration::from_millis(ms));
        (name.to_owned(), Identity { run: run.to_owned(), clock: (clock * 1000, at(1000), at(1000 + trip)) })
    }

    #[test]
    fn the_rights_that_doctor_asks_for_are_those_of_the_readme() {
        LeastUser::of(include_str!("../README.md")).is_one_with(NEEDS.commands, NEEDS.spare);
    }

    #[test]
    fn clocks_are_apart_only_if_no_round_trip_explains_it() {
        for (shown, health) in [
            ([(5000, 1), (5000, 1)], Health::Well),
            ([(5000, 1), (5400, 1)], Health::Well),
            ([(5000, 1), (5600, 1)], Health::Warning),
            ([(5600, 1), (5000, 1)], Health::Warning),
            ([(5000, 1), (5600, 700)], Health::Well),
        ] {
            let known: Vec<_> = shown.iter().map(|(clock, trip)| node("n", "", *clock, *trip)).collect();
            assert_eq!(clocks(&known).unwrap().health, health, "{shown:?}");
        }
    }

    #[test]
    fn one_run_under_two_addresses_is_one_server_and_unknown_ones_are_not() {
        let found = same_servers(&[node("a", "1", 0, 0), node("b", "2", 0, 0), node("c", "1", 0, 0)]);
        assert!(found.len() == 1 && found[0].text.starts_with("c is the same server as a"), "{found:?}");
        assert!(same_servers(&[node("a", "", 0, 0), node("b", "", 0, 0)]).is_empty());
    }
}
