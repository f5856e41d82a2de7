use std::io;
use std::path::Path;
use std::time::Duration;

use futures::future::BoxFuture;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::launch::redis as launcher;
use crate::launch::resp::Answer;
use crate::launch::{Lifetime, Process, Settings, find, free_port, place, resp};

/// A Redis server on a free port of 127.0.0.1, with its files in a temporary folder. It ends when this value is dropped, and
/// when the test's process ends.
#[derive(Debug)]
pub struct Server {
    process: Process,
    settings: Settings,
    password: Option<String>,
    /// Dropped after the process. Several servers of a topology share it.
    folder: std::sync::Arc<TempDir>,
}

impl Server {
    /// Starts a server without persistence, with these further arguments, and waits until it answers.
    ///
    /// `None`: `redis-server` is not installed.
    ///
    /// # Panics
    /// When it is installed and does not start.
    pub async fn start(arguments: &[&str]) -> Option<Self> {
        Self::start_with(Settings::arguments(arguments)).await
    }

    /// Starts a server as [`start`](Self::start) does, with environment variables too.
    ///
    /// # Panics
    /// When it is installed and does not start.
    pub async fn start_with(settings: Settings) -> Option<Self> {
        blocking(move || Self::start_blocking_with(settings)).await
    }

    /// Starts a server as [`start`](Self::start) does, for a test without a runtime.
    ///
    /// # Panics
    /// When it is installed and does not start.
    pub fn start_blocking(arguments: &[&str]) -> Option<Self> {
        Self::start_blocking_with(Settings::arguments(arguments))
    }

    fn start_blocking_with(settings: Settings) -> Option<Self> {
        find(launcher::PROGRAM)?;
        let folder = folder();
        let process = launcher::start(folder.path(), &settings, Lifetime::WithOwner);
        Some(Self::of(process.unwrap_or_else(|why| panic!("{why}")), settings, folder))
    }

    /// The servers of a topology, which the launcher started in this folder with these settings.
    pub(super) fn all_of(processes: Vec<Process>, settings: &Settings, folder: TempDir) -> Vec<Self> {
        let folder = std::sync::Arc::new(folder);
        let of = |process| Self { process, settings: settings.clone(), password: None, folder: folder.clone() };
        processes.into_iter().map(of).collect()
    }

    fn of(process: Process, settings: Settings, folder: TempDir) -> Self {
        let arguments = settings.arguments.iter();
        let password = arguments.skip_while(|argument| *argument != "--requirepass").nth(1).cloned();
        Self { process, settings, password, folder: std::sync::Arc::new(folder) }
    }

    /// The port on which the server listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.process.port()
    }

    /// The server's URL for the default user, with the password if the server asks for one.
    pub fn url(&self) -> String {
        let login = self.password.as_ref().map(|password| format!("redis://:{password}@"));
        launcher::url(self.port()).replacen("redis://", login.as_deref().unwrap_or("redis://"), 1)
    }

    /// Has the server serve TLS too, on the port that this returns, with these files: the certificate of an authority, and
    /// the server's own certificate and key. `clients` says whether it asks clients for certificates: `yes`, `no` or
    /// `optional`. `None`: the server was built without TLS.
    ///
    /// # Panics
    /// When the server was built with TLS and refuses.
    pub async fn serve_tls(&self, [ca, cert, key]: [&Path; 3], clients: &str) -> Option<u16> {
        if self.ask(&["CONFIG", "GET", "tls-port"]).await == Answer::List(Vec::new()) {
            return None;
        }
        let file = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
        let port = free_port().expect("a free port");
        let settings = ["tls-cert-file", &file(cert), "tls-key-file", &file(key), "tls-ca-cert-file", &file(ca)];
        let port_number = port.to_string();
        let command =
            [&["CONFIG", "SET"], &settings[..], &["tls-auth-clients", clients, "tls-port", &port_number]].concat();
        assert_eq!(self.ask(&command).await, Answer::Text("OK".into()));
        Some(port)
    }

    /// Sends a command over a connection of its own, and gives the answer.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn ask(&self, words: &[&str]) -> Answer {
        let answer = match &self.password {
            Some(password) => ask(self.port(), &[&["AUTH", password], words]).await,
            None => ask(self.port(), &[words]).await,
        };
        answer.expect("the test's server answers")
    }

    /// How often the server has carried out a command, such as `evalsha`; commands of scripts count too.
    pub async fn calls(&self, command: &str) -> u64 {
        let stats = self.ask(&["INFO", "commandstats"]).await;
        let line = stats
            .text()
            .lines()
            .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls="))?.split(',').next());
        line.and_then(|calls| calls.parse().ok()).unwrap_or(0)
    }

    /// How many scripts it has carried out, however many steps each of them had.
    pub async fn scripts(&self) -> u64 {
        self.calls("evalsha").await + self.calls("eval").await
    }

    /// How many clients are connected, beside the one that asks.
    pub async fn clients(&self) -> usize {
        self.ask(&["CLIENT", "LIST"]).await.text().lines().count() - 1
    }

    /// Stops the server's process: connections stay open, nothing is answered.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets the server's process go on, with all that was sent meanwhile.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Ends the server, and with it all that it kept.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Ends the server and starts another one on the same port.
    ///
    /// # Panics
    /// When that does not start.
    pub async fn restart(&mut self) {
        self.kill();
        let (port, settings, folder) = (self.port(), self.settings.clone(), self.folder.clone());
        let started = blocking(move || launcher::start_on(port, folder.path(), &settings, Lifetime::WithOwner)).await;
        self.process = started.unwrap_or_else(|why| panic!("{why}"));
    }

    /// Ends the server and starts another one on the same port, for a test without a runtime.
    ///
    /// # Panics
    /// When that does not start.
    pub fn restart_blocking(&mut self) {
        self.kill();
        let started = launcher::start_on(self.port(), self.folder.path(), &self.settings, Lifetime::WithOwner);
        self.process = started.unwrap_or_else(|why| panic!("{why}"));
    }
}

/// How long a server may take for an answer on a busy machine.
const BUSY: Duration = Duration::from_secs(10);

/// Sends commands to the server on this port of 127.0.0.1, one after the other over a connection of their own, and gives the
/// last answer.
///
/// # Errors
/// When the server does not answer within ten seconds.
pub async fn ask(port: u16, commands: &[&[&str]]) -> io::Result<Answer> {
    let owned = |words: &&[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let commands: Vec<_> = commands.iter().map(owned).collect();
    // In a box: the futures of tests nest deeply enough without this one.
    let answer: BoxFuture<'_, _> = Box::pin(blocking(move || resp::ask_within(BUSY, port, &commands)));
    answer.await
}

/// Runs work that blocks beside the runtime of the test.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    spawn_blocking(work).await.unwrap_or_else(|failed| match failed.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(cancelled) => panic!("{cancelled}"),
    })
}

pub(super) fn folder() -> TempDir {
    tempfile::Builder::new().prefix("leasehold-redis-").tempdir_in(place()).expect("a temporary folder")
}
