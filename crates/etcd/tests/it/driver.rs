//! The driver suite, on clusters of one server.

use std::collections::BTreeMap;

use async_trait::async_trait;
use leasehold_core::Kind;
use leasehold_core::conformance::driver::{Able, Fault, Rig, Rigged, Room, Said, Unable, never};
use leasehold_etcd::KIND;
use leasehold_testkit::etcd::Cluster;
use leasehold_testkit::eventually_some;
use leasehold_testkit::launch::etcd::{is_healthy, post};

use crate::clients::{log_in, metric, watches};

pub(crate) struct Servers;

#[async_trait]
impl Rig for Servers {
    fn kind(&self) -> Kind {
        KIND
    }

    async fn start(&self, room: Room) -> Able<Box<dyn Rigged>> {
        if room == Room::FewConnections {
            return never("etcd has no limit of connections");
        }
        let cluster = Cluster::one_or_why(&["--bcrypt-cost=4"]).await.map_err(Unable::Absent)?;
        Ok(Box::new(Rigging { cluster }))
    }

    /// A cycle takes milliseconds.
    fn cycles(&self) -> usize {
        2_000
    }
}

struct Rigging {
    cluster: Cluster,
}

impl Rigging {
    async fn control(&self, command: &str) -> Able<()> {
        let arguments: Vec<_> = command.split(' ').collect();
        self.cluster.control(&arguments).await.map(drop).map_err(Unable::Failed)
    }

    fn ask(&self, page: &str, json: &str) -> Able<()> {
        let answer = post(self.port(), page, json)?;
        if answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200") {
            Ok(())
        } else {
            Err(Unable::Failed(answer))
        }
    }

    async fn answers(&self) -> Able<()> {
        let port = self.port();
        let healthy = move || eventually_some("it answers", || is_healthy(port).then_some(()));
        tokio::task::spawn_blocking(healthy).await?;
        Ok(())
    }
}

#[async_trait]
impl Rigged for Rigging {
    fn url(&self) -> String {
        self.cluster.url()
    }

    fn port(&self) -> u16 {
        self.cluster.alone().port()
    }

    fn pause(&self) -> Able<()> {
        self.cluster.alone().pause();
        Ok(())
    }

    fn resume(&self) -> Able<()> {
        self.cluster.alone().resume();
        Ok(())
    }

    async fn kill(&mut self) -> Able<()> {
        self.cluster.member(0).kill();
        Ok(())
    }

    async fn restart(&mut self) -> Able<()> {
        self.cluster.restart(0).map_err(Unable::Failed)?;
        self.answers().await
    }

    async fn forget(&mut self) -> Able<()> {
        self.cluster.wipe(0).map_err(Unable::Failed)?;
        self.answers().await
    }

    async fn bring(&mut self, fault: Fault) -> Able<Said> {
        match fault {
            Fault::Full => {
                self.ask("v3/maintenance/alarm", r#"{"action":"ACTIVATE","alarm":"NOSPACE"}"#)?;
                Ok(&["database is full", "database space exceeded"])
            }
            Fault::MissingRight => {
                self.control("--user=root:root role revoke-permission app --prefix=true leasehold/leasehold/").await?;
                Ok(&["lacks the rights", "permission denied"])
            }
            Fault::ReadOnly | Fault::NoConnectionLeft => never("etcd has no such state"),
        }
    }

    async fn mend(&mut self, fault: Fault) -> Able<()> {
        match fault {
            Fault::Full => self.control("alarm disarm").await,
            Fault::MissingRight => {
                self.control("--user=root:root role grant-permission app readwrite --prefix=true leasehold/leasehold/")
                    .await
            }
            Fault::ReadOnly | Fault::NoConnectionLeft => Ok(()),
        }
    }

    async fn login(&mut self) -> Able<String> {
        let user = log_in(&self.cluster, "app:hunter2/canary", "readwrite", "leasehold/leasehold/");
        user.await.map_err(Unable::Failed)?;
        Ok(format!("etcd://app:hunter2%2Fcanary@127.0.0.1:{}?sslmode=disable", self.port()))
    }

    async fn fill(&self, keys: usize) -> Able<()> {
        self.cluster.fill("leasehold/leasehold/held/other", keys).await.map_err(Unable::Failed)
    }

    async fn keeps(&self) -> Able<BTreeMap<&'static str, u64>> {
        let leases =
            |what: &str| metric(self.port(), |line| line.starts_with(&format!("etcd_debugging_lease_{what}_total")));
        let of_names = |line: &str| line.starts_with("etcd_debugging_mvcc_keys_total");
        Ok(BTreeMap::from([
            ("watches", watches(self.port())),
            ("leases", leases("granted") - leases("revoked")),
            ("keys", metric(self.port(), of_names)),
        ]))
    }
}
