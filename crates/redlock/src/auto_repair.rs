use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Clock, OwnerId};
use tokio::time::sleep;

use crate::answer::{Marker, Phase};
use crate::background_tasks::OwnTask;
use crate::node_state::NodeCondition;
use crate::nodes::Nodes;
use crate::{membership, repair};

/// How often it is looked whether a node has no data.
const PAUSE: Duration = Duration::from_secs(1);

/// So long a repair that is under way is taken to be another program's, which will end it. Longer than most leases, for which a
/// repair waits: programs that began anew with each other's would never end one.
const ANOTHERS: Duration = Duration::from_secs(600);

/// Begins to repair nodes that are found to have no data. Must be called inside a runtime.
pub(crate) fn repair_as_needed(nodes: &Arc<Nodes>, clock: &Clock) -> OwnTask {
    let (nodes, clock) = (Arc::clone(nodes), clock.clone());
    OwnTask::spawn(async move {
        let (mut anothers_since, mut ours) = (None, Vec::<OwnerId>::new());
        loop {
            sleep(PAUSE).await;
            if !nodes.all().iter().any(|node| node.is_reset()) {
                continue;
            }
            let markers = membership::markers(&nodes).await;
            // What this program has begun and could not end, it begins anew.
            let is_ours = |marker: &Marker| ours.iter().any(|incarnation| incarnation.to_hex() == marker.incarnation);
            let is_anothers = |marker: &Marker| marker.phase == Phase::Healing && !is_ours(marker);
            if markers.iter().flatten().any(is_anothers) {
                let since = *anothers_since.get_or_insert_with(|| clock.now());
                if clock.now().since(since) < ANOTHERS {
                    continue;
                }
            }
            anothers_since = None;
            ours.clear();
            match repair::repair(&nodes, &clock, &mut ours).await {
                Ok(states) => {
                    for (node, state) in nodes.all().iter().zip(states) {
                        node.note_reset(state.condition == NodeCondition::Reset);
                    }
                }
                Err(error) => tracing::warn!(%error, "the repair of a node failed; it is tried again"),
            }
        }
    })
}
