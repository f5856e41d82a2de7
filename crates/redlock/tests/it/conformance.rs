//! The shared suite, with and without group commit, on the five servers that `LEASEHOLD_TEST_REDLOCK` names: `redis://` URLs,
//! separated by commas.

use std::time::Duration;

use leasehold_redlock::core::conformance::Suite;
use leasehold_redlock::{Redlock, RedlockBackend};
use leasehold_testkit::{Store, if_deep};

pub(crate) fn suite() -> Suite {
    Suite::exclusive([("", nodes(true))].into_iter().chain(if_deep([("group_commit_off", nodes(false))])))
}

fn nodes(group_commit: bool) -> Store<RedlockBackend> {
    let nodes = Store::named_by("LEASEHOLD_TEST_REDLOCK", Redlock::claims(), move |urls, namespace| {
        let builder = Redlock::builder().url(&urls).namespace(namespace).group_commit(group_commit);
        // So that a busy machine is not taken for a silent node.
        let builder = builder.node_limit(Duration::from_secs(2));
        Box::pin(async move { builder.backend().await })
    });
    nodes.steps_are_not_atomic()
}
