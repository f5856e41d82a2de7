use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use leasehold_core::conformance::needs_or_why;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use tempfile::TempDir;

use crate::launch::mariadb as launcher;
use crate::launch::{Process, Settings, place};
use crate::private::{restart, started};

/// A private `MariaDB` on a free port of the loopback interface, with an empty database `leasehold` and a user root
/// without a password. It ends with this value, and with this process whatever happens to it.
#[derive(Debug)]
pub struct Server {
    process: Process,
    /// Dropped after the process.
    _folder: Arc<TempDir>,
}

impl Server {
    /// Starts a server with these arguments beside the usual ones, and waits until it answers. Arguments that do not begin
    /// with a dash are variables of the server's environment, such as `TZ=Europe/Berlin`.
    pub async fn start(arguments: &[&str]) -> Result<Self, String> {
        Self::start_in(&place(), arguments).await
    }

    /// Starts a server as [`start`](Self::start) does, with its data in a folder of its own below `place`.
    pub async fn start_in(place: &Path, arguments: &[&str]) -> Result<Self, String> {
        let (arguments, variables) =
            arguments.iter().map(|&argument| argument.to_owned()).partition(|argument| argument.starts_with('-'));
        let settings = Settings { arguments, variables };
        let (process, folder) = started("mariadb", place, move |folder| launcher::start(folder, &settings)).await?;
        Ok(Self { process, _folder: folder })
    }

    /// The same, for a test that is ignored where there is no server: does not return then.
    pub async fn needed(arguments: &[&str]) -> Self {
        needs_or_why("MariaDB or MySQL", Self::start(arguments).await)
    }

    /// Starts the server again on its data, and on the same port.
    pub async fn restart(&mut self) -> Result<(), String> {
        restart(&mut self.process).await
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
    pub async fn sql(&self, statements: &[&str]) {
        let mut session = self.session().await.unwrap_or_else(|why| panic!("no session: {why}"));
        for statement in statements {
            let done = session.query_drop(*statement).await;
            done.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }

    /// One number of `SHOW GLOBAL STATUS`; zero if there is none of this name.
    pub async fn status(&self, name: &str) -> u64 {
        let mut session = self.session().await.unwrap_or_else(|why| panic!("no session: {why}"));
        let row: Option<(String, u64)> = session
            .query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'"))
            .await
            .unwrap_or_else(|error| panic!("status: {error}"));
        row.map_or(0, |(_, value)| value)
    }

    /// The one number that a query of root's answers.
    pub async fn number(&self, query: &str) -> u64 {
        let mut session = self.session().await.unwrap_or_else(|why| panic!("no session: {why}"));
        let number: Result<Option<u64>, _> = session.query_first(query).await;
        number.unwrap_or_else(|error| panic!("{query}: {error}")).unwrap_or_else(|| panic!("{query}: no row"))
    }

    /// The ids of the connections that wait for an advisory lock, and their statements.
    pub async fn waiting_for_locks(&self) -> Vec<(u64, String)> {
        let waiting = "SELECT id, info FROM information_schema.processlist WHERE info LIKE 'SELECT IS_USED_LOCK%'";
        let mut session = self.session().await.unwrap_or_else(|why| panic!("no session: {why}"));
        session.query(waiting).await.unwrap_or_else(|error| panic!("{waiting}: {error}"))
    }

    /// A session of root's past everything that this crate does.
    pub async fn session(&self) -> Result<Conn, String> {
        // Else the driver asks for these, and its question is among the statements that are counted.
        let settings = "prefer_socket=false&max_allowed_packet=16777216&wait_timeout=28800";
        let url = format!("mysql://root@127.0.0.1:{}/?{settings}", self.port());
        let opts = Opts::from_url(&url).map_err(|error| error.to_string())?;
        Conn::new(opts).await.map_err(|error| error.to_string())
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
