//! `PostgreSQL` servers, standbys and poolers for async tests. No driver is compiled.

use std::path::Path;
use std::sync::Arc;

use leasehold_core::conformance::needs_or_why;
use tempfile::TempDir;

use crate::launch::postgres as launcher;
use crate::launch::{Lifetime, Process, Settings, place};

/// A private `PostgreSQL` on a free port of the loopback interface, with an empty database `leasehold` and a superuser
/// leasehold without a password; or a standby of one, or a pooler before one. It ends with this value, and with this process
/// whatever happens to it.
#[derive(Debug)]
pub struct Server {
    process: Process,
    settings: Settings,
    /// Dropped after the process.
    folder: Arc<TempDir>,
}

impl Server {
    /// Starts a server with these settings, such as `fsync=on`, and waits until it answers. Does not return where there is no
    /// server: the test is ignored then.
    pub async fn needed(settings: &[&str]) -> Self {
        needs_or_why("PostgreSQL", Self::start_with(settings).await)
    }

    /// Starts a server with these settings, and waits until it answers.
    ///
    /// # Errors
    /// When it is not installed or does not start; with the end of its log.
    pub async fn start_with(settings: &[&str]) -> Result<Self, String> {
        let arguments = settings.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]).collect();
        let settings = Settings { arguments, variables: Vec::new() };
        Self::start(move |folder| launcher::start(folder, &settings, Lifetime::WithOwner)).await
    }

    /// Starts a server that also speaks TLS, with these: the authority, its certificate and its key. Does not return where there
    /// is no server.
    pub async fn with_tls([_, cert, key]: [&Path; 3]) -> Self {
        let (cert, key) = (cert.to_owned(), key.to_owned());
        let start = move |folder: &Path| launcher::start_with_tls(folder, [&cert, &key], Lifetime::WithOwner);
        needs_or_why("PostgreSQL", Self::start(start).await)
    }

    /// Starts a standby of this server, which follows it and answers queries.
    ///
    /// # Errors
    /// When it does not start; with the end of its log.
    pub async fn standby(&self) -> Result<Self, String> {
        let primary = self.port();
        Self::start(move |folder| launcher::start_standby(primary, folder, Lifetime::WithOwner)).await
    }

    /// Starts a `PgBouncer` before this server, in transaction mode, with two connections to the server. Does not return
    /// where there is none.
    pub async fn pooler(&self) -> Self {
        let server = self.port();
        let started = Self::start(move |folder| launcher::start_pooler(server, folder, Lifetime::WithOwner)).await;
        needs_or_why("PgBouncer", started)
    }

    async fn start(launch: impl FnOnce(&Path) -> Result<Process, String> + Send + 'static) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("leasehold-postgres-").tempdir_in(place());
        let folder = Arc::new(folder.map_err(|e| format!("a temporary folder: {e}"))?);
        let parent = Arc::clone(&folder);
        let started = tokio::task::spawn_blocking(move || launch(parent.path())).await;
        let process = started.unwrap_or_else(|failed| Err(failed.to_string()))?;
        Ok(Self { process, settings: Settings::default(), folder })
    }

    /// Starts the server again on its data, and on the same port, with the usual settings.
    ///
    /// # Errors
    /// When it does not answer within half a minute.
    pub async fn restart(&mut self) -> Result<(), String> {
        let (port, settings, folder) = (self.port(), self.settings.clone(), Arc::clone(&self.folder));
        let start = move || launcher::start_on(port, folder.path(), &settings, Lifetime::WithOwner);
        let started = tokio::task::spawn_blocking(start).await;
        self.process = started.unwrap_or_else(|failed| Err(failed.to_string()))?;
        Ok(())
    }

    /// Stops the server and its sessions: connections stay open, nothing is answered.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets a stopped server go on, with all that was sent meanwhile.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Ends the server as a power cut would, and keeps its data.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// The port on which it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.process.port()
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
