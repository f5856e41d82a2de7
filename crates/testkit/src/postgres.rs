//! `PostgreSQL` servers, standbys and poolers for async tests. No driver is compiled.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use leasehold_core::conformance::needs_or_why;
use tempfile::TempDir;

use crate::launch::postgres as launcher;
use crate::launch::{Process, Settings, place};
use crate::private::{restart, started};

/// A private `PostgreSQL` on a free port of the loopback interface, with an empty database `leasehold` and a superuser
/// leasehold without a password; or a standby of one, or a pooler before one. It ends with this value, and with this process
/// whatever happens to it.
#[derive(Debug)]
pub struct Server {
    process: Process,
    /// Dropped after the process.
    _folder: Arc<TempDir>,
}

impl Server {
    /// Starts a server with these settings, such as `fsync=on`, and waits until it answers. Does not return where there is no
    /// server: the test is ignored then.
    pub async fn needed(settings: &[&str]) -> Self {
        needs_or_why("PostgreSQL", Self::start_with(settings).await)
    }

    /// The same where it is an error that there is none.
    pub async fn start_with(settings: &[&str]) -> Result<Self, String> {
        let settings = Settings::arguments(settings.iter().flat_map(|setting| ["-c", setting]));
        Self::start(move |folder| launcher::start(folder, &settings)).await
    }

    /// Starts a server that also speaks TLS, with these: the authority, its certificate and its key. Does not return where there
    /// is no server.
    pub async fn with_tls([_, cert, key]: [&Path; 3]) -> Self {
        let (cert, key) = (cert.to_owned(), key.to_owned());
        let start = move |folder: &Path| launcher::start_with_tls(folder, [&cert, &key]);
        needs_or_why("PostgreSQL", Self::start(start).await)
    }

    /// Starts a standby of this server, which follows it and answers queries.
    pub async fn standby(&self) -> Result<Self, String> {
        let primary = self.port();
        Self::start(move |folder| launcher::start_standby(primary, folder)).await
    }

    /// Starts a `PgBouncer` before this server, in transaction mode, with two connections to the server. Does not return
    /// where there is none.
    pub async fn pooler(&self) -> Self {
        let server = self.port();
        needs_or_why("PgBouncer", Self::start(move |folder| launcher::start_pooler(server, folder)).await)
    }

    async fn start(launch: impl FnOnce(&Path) -> Result<Process, String> + Send + 'static) -> Result<Self, String> {
        let (process, folder) = started("postgres", &place(), launch).await?;
        Ok(Self { process, _folder: folder })
    }

    /// Starts the server again on its data, and on the same port.
    pub async fn restart(&mut self) -> Result<(), String> {
        restart(&mut self.process).await
    }

    /// Where it listens: a URL with its database.
    pub fn url(&self) -> String {
        launcher::url(self.port())
    }

    /// The same for another user.
    pub fn url_of(&self, user: &str, password: &str) -> String {
        format!("postgres://{user}:{password}@127.0.0.1:{}/leasehold?sslmode=disable", self.port())
    }
}

impl Deref for Server {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}
