use leasehold_core::{Finding, Kind, Locks, Nodes, Result};

use crate::examination::examine;
use crate::locker::Redlock;
use crate::node_state::{NodeCondition as Is, NodeState};

/// `redlock:` before the URLs of the nodes, for programs that find their store by the scheme of a URL.
pub const KIND: Kind = Kind::new("redlock", &["redlock"], Redlock::claims, |target| {
    Box::pin(async move { Redlock::connect(target.url).await.map(Locks::exclusive) })
})
.package("leasehold-redlock")
.purpose("a majority of independent Redis servers")
.takes_password()
.examine(|url| Box::pin(examine(url)))
.cure(leasehold_redis::CURE)
.nodes(Nodes { states: |url| Box::pin(states(url, false)), heal: |url| Box::pin(states(url, true)) });

/// The state of each node, after a repair if that is asked for.
async fn states(url: &str, repair: bool) -> Result<Vec<Finding>> {
    let locks = Redlock::connect(url).await?;
    let states = if repair { locks.repair().await } else { Ok(locks.node_states().await) };
    locks.close().await;
    Ok(states?.into_iter().map(finding_of).collect())
}

/// The state of one node of a majority, with advice for its repair.
fn finding_of(state: NodeState) -> Finding {
    let node = state.node;
    match state.condition {
        Is::Serving => Finding::well("node", format!("{node} serves")),
        Is::Reset => Finding::error("node-reset", format!("{node} came back without its data and does not count"))
            .cure("leasehold heal"),
        Is::SameServer(other) => Finding::error("same-server", format!("{node} is the same server as {other}"))
            .cure(format!("name another server in place of {node}")),
        Is::Unreachable(why) => Finding::warning("node-unreachable", format!("{node} does not answer ({why})"))
            .cure("start it, or replace it"),
        Is::Closed(why) => Finding::warning("node-unreachable", format!("{node} was not asked: {why}")),
        Is::Refused(why) => Finding::error("node-refuses", format!("{node} refuses ({why})"))
            .cure("correct its password or permissions"),
    }
}
