//! The conformance suite on the server that `LEASEHOLD_TEST_ETCD` names, and on the cluster that `LEASEHOLD_TEST_ETCD_CLUSTER` names.

use leasehold_core::conformance::Suite;
use leasehold_etcd::{Etcd, EtcdBackend};
use leasehold_testkit::{Store, if_deep};

const SERVER: &str = "LEASEHOLD_TEST_ETCD";

pub(crate) fn suite() -> Suite {
    let cluster = etcd("LEASEHOLD_TEST_ETCD_CLUSTER", true);
    let others = [("three_members", cluster), ("group_commit_off", etcd(SERVER, false))];
    Suite::shared([("", etcd(SERVER, true))].into_iter().chain(if_deep(others)))
}

fn etcd(variable: &'static str, group_commit: bool) -> Store<EtcdBackend> {
    Store::named_by(variable, Etcd::claims(), move |url, namespace| {
        let builder = Etcd::builder().url(url).namespace(namespace).group_commit(group_commit);
        Box::pin(async move { builder.backend().await })
    })
}
