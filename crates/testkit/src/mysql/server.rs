use std::path::Path;
use std::sync::Arc;

use leasehold_core::conformance::needs_or_why;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use tempfile::TempDir;

use crate::launch::mariadb as launcher;
use crate::launch::{Lifetime, Process, Settings, place};

/// A private `MariaDB` on a free port of the loopback interface, with an empty database `leasehold` and a user root
/// without a password. It ends with this value, and with this process whatever happens to it.
#[derive(Debug)]
pub struct Server {
    process: Process,
    settings: Settings,
    /// Dropped after the process.
    folder: Arc<TempDir>,
}

impl Server {
    /// Starts a server with these arguments beside the usual ones, and waits until it answers. Arguments that do not begin
    /// with a dash are variables of the server's environment, such as `TZ=Europe/Berlin`.
    ///
    /// # Errors
    /// When no server is installed, or it ended; with the end of its log.
    pub async fn start(arguments: &[&str]) -> Result<Self, String> {
        Self::start_in(&place(), arguments).await
    }

    /// Starts a server as [`start`](Self::start) does, with its data in a folder of its own below `place`.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn start_in(place: &Path, arguments: &[&str]) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("leasehold-mariadb-").tempdir_in(place);
        let folder = Arc::new(folder.map_err(|e| format!("{}: {e}", place.display()))?);
        let (arguments, variables) =
            arguments.iter().map(|&argument| argument.to_owned()).partition(|argument| argument.starts_with('-'));
        let settings = Settings { arguments, variables };
        let process = blocking({
            let (folder, settings) = (Arc::clone(&folder), settings.clone());
            move || launcher::start(folder.path(), &settings, Lifetime::WithOwner)
        });
        Ok(Self { process: process.await?, settings, folder })
    }

    /// The same, for a test that is ignored where there is no server: does not return then.
    pub async fn needed(arguments: &[&str]) -> Self {
        needs_or_why("MariaDB or MySQL", Self::start(arguments).await)
    }

    /// Starts the server again on its data, and on the same port.
    ///
    /// # Errors
    /// When it does not answer within half a minute.
    pub async fn restart(&mut self) -> Result<(), String> {
        let (port, settings, folder) = (self.port(), self.settings.clone(), Arc::clone(&self.folder));
        let started = blocking(move || launcher::start_on(port, folder.path(), &settings, Lifetime::WithOwner));
        self.process = started.await?;
        Ok(())
    }

    /// Ends the server as a power cut would, and keeps its data.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Stops the server's process: connections stay open and new ones are accepted, and nothing is answered.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets a stopped server go on, with all that was sent meanwhile.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// The process id of the server.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The port on which the server listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.process.port()
    }

    /// Where it listens: a URL with its database.
    pub fn url(&self) -> String {
        self.url_of("root", "")
    }

    /// The same for another user.
    pub fn url_of(&self, user: &str, password: &str) -> String {
        let trust = if password.is_empty() { "pool_min=0" } else { "allow_public_key_retrieval=true" };
        format!("mysql://{user}:{password}@127.0.0.1:{}/leasehold?{trust}", self.port())
    }

    /// Runs statements as root, one after the other.
    ///
    /// # Panics
    /// If one fails.
    pub async fn sql(&self, statements: &[&str]) {
        let mut session = self.session().await.unwrap_or_else(|why| panic!("no session: {why}"));
        for statement in statements {
            let done = session.query_drop(*statement).await;
            done.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }

    /// One number of `SHOW GLOBAL STATUS`; zero if there is none of this name.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn status(&self, name: &str) -> u64 {
        let mut session = self.session().await.unwrap_or_else(|why| panic!("no session: {why}"));
        let row: Option<(String, u64)> = session
            .query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'"))
            .await
            .unwrap_or_else(|error| panic!("status: {error}"));
        row.map_or(0, |(_, value)| value)
    }

    /// A session of root's past everything that this crate does.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub async fn session(&self) -> Result<Conn, String> {
        // Else the driver asks for these, and its question is among the statements that are counted.
        let settings = "prefer_socket=false&max_allowed_packet=16777216&wait_timeout=28800";
        let url = format!("mysql://root@127.0.0.1:{}/?{settings}", self.port());
        let opts = Opts::from_url(&url).map_err(|error| error.to_string())?;
        Conn::new(opts).await.map_err(|error| error.to_string())
    }
}

/// Runs work that blocks beside the runtime of the test.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|failed| Err(failed.to_string()))
}
