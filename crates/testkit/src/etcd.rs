//! etcd servers and clusters for async tests. No driver is compiled.

use std::path::Path;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use leasehold_core::conformance::needs_or_why;
use tempfile::TempDir;

use crate::launch::etcd as launcher;
use crate::launch::{Process, Settings, free_port, place};
use crate::private::{blocking, started};
use crate::waiting::eventually_some;

/// A private etcd of one or more members on free ports of the loopback interface. It ends with this value, and with this process
/// whatever happens to it.
#[derive(Debug)]
pub struct Cluster {
    members: Vec<Process>,
    /// Dropped after the processes.
    folder: Arc<TempDir>,
}

impl Cluster {
    /// Starts one server with these arguments, and waits until it answers. Does not return where there is no server: the test is
    /// ignored then.
    pub async fn one(arguments: &[&str]) -> Self {
        needs_or_why("etcd", Self::one_or_why(arguments).await)
    }

    /// The same for what is no test.
    pub async fn one_or_why(arguments: &[&str]) -> Result<Self, String> {
        let settings = Settings::arguments(arguments);
        Self::start(move |folder| Ok(vec![launcher::start(folder, &settings)?])).await
    }

    /// Starts one server that also speaks TLS, with these: the authority, its certificate and its key. Answers the port of TLS,
    /// too. Does not return where there is no server.
    pub async fn one_with_tls([_, cert, key]: [&Path; 3]) -> (Self, u16) {
        let (cert, key) = (cert.to_owned(), key.to_owned());
        let tls = free_port().expect("a free port");
        let start = move |folder: &Path| Ok(vec![launcher::start_with_tls(folder, tls, [&cert, &key])?]);
        (needs_or_why("etcd", Self::start(start).await), tls)
    }

    /// Starts a cluster of three members, and waits until they have a leader. Does not return where there is no server.
    pub async fn three() -> Self {
        needs_or_why("etcd", Self::start(|folder| launcher::start_cluster(3, folder, &Settings::default())).await)
    }

    async fn start(
        launch: impl FnOnce(&Path) -> Result<Vec<Process>, String> + Send + 'static,
    ) -> Result<Self, String> {
        let (members, folder) = started("etcd", &place(), launch).await?;
        Ok(Self { members, folder })
    }

    /// The ports of all members, on 127.0.0.1.
    pub fn ports(&self) -> Vec<u16> {
        self.members.iter().map(Process::port).collect()
    }

    /// A URL of all members.
    pub fn url(&self) -> String {
        launcher::url(&self.ports())
    }

    /// The member with this number.
    pub fn member(&mut self, number: usize) -> &mut Process {
        &mut self.members[number]
    }

    /// The only member of a cluster of one.
    pub fn alone(&self) -> &Process {
        &self.members[0]
    }

    /// Starts a member that was killed again, on its data and its port.
    pub fn restart(&mut self, number: usize) -> Result<(), String> {
        self.members[number] = self.members[number].launch().start(&[])?;
        Ok(())
    }

    /// Ends a server and starts it again without its data.
    pub fn wipe(&mut self, number: usize) -> Result<(), String> {
        self.members[number].kill();
        let data = self.folder.path().join(format!("etcd-{}", self.ports()[number])).join("data");
        std::fs::remove_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
        self.restart(number)
    }

    /// Writes so many keys, whose names begin with `prefix`, in a few requests.
    pub async fn fill(&self, prefix: &str, keys: usize) -> Result<(), String> {
        let (port, prefix) = (self.ports()[0], prefix.to_owned());
        let fill = move || {
            let names: Vec<_> =
                (0..keys).map(|number| BASE64_STANDARD.encode(format!("{prefix}{number:08}"))).collect();
            // The server takes 128 operations at a time.
            names.chunks(128).try_for_each(|names| {
                let puts: Vec<_> = names.iter().map(|name| format!(r#"{{"requestPut":{{"key":"{name}"}}}}"#)).collect();
                let answer = launcher::post(port, "v3/kv/txn", &format!(r#"{{"success":[{}]}}"#, puts.join(",")));
                let answer = answer.map_err(|e| e.to_string())?;
                if answer.contains(r#""succeeded":true"#) { Ok(()) } else { Err(answer) }
            })
        };
        blocking(fill).await
    }

    /// The number of the leader.
    pub async fn leader(&self) -> usize {
        let ports = self.ports();
        let leader = move || ports.iter().position(|port| launcher::leads(*port));
        blocking(move || eventually_some("somebody leads", leader)).await
    }

    /// Has the leader hand its office to another member, and answers the number of that one.
    pub async fn move_leader(&self) -> Result<usize, String> {
        let (ports, leader) = (self.ports(), self.leader().await);
        let to = (leader + 1) % ports.len();
        let moved = move || launcher::control(&[ports[leader]], &["move-leader", &launcher::id(&ports, ports[to])?]);
        blocking(moved).await.map(|_| to)
    }

    /// Runs `etcdctl` with these arguments at all members. Answers what it prints.
    pub async fn control(&self, arguments: &[&str]) -> Result<String, String> {
        let ports = self.ports();
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        blocking(move || launcher::control(&ports, &arguments.iter().map(String::as_str).collect::<Vec<_>>())).await
    }
}
