use leasehold_core::{Finding, Health, Kind, Locks, Nodes};

use crate::locker::Redlock;
use crate::node_state::{NodeCondition as Is, NodeState};

/// `redlock:` before the URLs of the nodes, for programs that find their store by the scheme of a URL.
pub const KIND: Kind = Kind::new("redlock", &["redlock"], Redlock::claims, |target| {
    Box::pin(async move { Redlock::connect(target.url).await.map(Locks::exclusive) })
})
.package("leasehold-redlock")
.purpose("a majority of independent Redis servers")
.takes_password()
.examine(|url| {
    Box::pin(async move {
        let mut warnings = Vec::new();
        for node in url.strip_prefix("redlock:").unwrap_or(url).split(',') {
            warnings.extend(leasehold_redis::examine(node).await?);
        }
        Ok(warnings)
    })
})
.cure(leasehold_redis::CURE)
.nodes(Nodes {
    states: |url| {
        Box::pin(async move {
            let locks = Redlock::connect(url).await?;
            let states = locks.node_states().await;
            locks.close().await;
            Ok(states.into_iter().map(finding_of).collect())
        })
    },
    heal: |url| {
        Box::pin(async move {
            let locks = Redlock::connect(url).await?;
            let states = locks.repair().await;
            locks.close().await;
            Ok(states?.into_iter().map(finding_of).collect())
        })
    },
});

/// The state of one node of a majority, with advice for its repair.
fn finding_of(state: NodeState) -> Finding {
    let node = state.node;
    let (health, text) = match state.condition {
        Is::Serving => (Health::Well, format!("{node} serves")),
        Is::Reset => {
            (Health::Error, format!("{node} came back without its data and does not count: run `leasehold heal`"))
        }
        Is::SameServer(other) => (Health::Error, format!("{node} is the same server as {other}: name another one")),
        Is::Unreachable(why) => (Health::Warning, format!("{node} does not answer ({why}): start it, or replace it")),
        Is::Refused(why) => (Health::Error, format!("{node} refuses ({why}): correct its password or permissions")),
    };
    Finding { health, text }
}
