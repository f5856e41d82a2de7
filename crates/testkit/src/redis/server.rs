use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tempfile::TempDir;

use crate::launch::redis as launcher;
use crate::launch::resp::Answer;
use crate::launch::{Process, Settings, find, free_port, place, resp};
use crate::private::{blocking, folder, restart};

/// A Redis server on a free port of 127.0.0.1, with its files in a temporary folder. It ends when this value is dropped, and
/// when the test's process ends.
#[derive(Debug)]
pub struct Server {
    process: Process,
    password: Option<String>,
    /// Dropped after the process. Several servers of a topology share it.
    _folder: Arc<TempDir>,
}

impl Server {
    /// Starts a server without persistence, with these further arguments, and waits until it answers.
    ///
    /// `None`: `redis-server` is not installed.
    pub async fn start(arguments: &[&str]) -> Option<Self> {
        let settings = Settings::arguments(arguments);
        blocking(move || Self::launch(&settings)).await
    }

    /// Starts a server as [`start`](Self::start) does, for a test without a runtime.
    pub fn start_blocking(arguments: &[&str]) -> Option<Self> {
        Self::launch(&Settings::arguments(arguments))
    }

    fn launch(settings: &Settings) -> Option<Self> {
        let server = Self::all(|folder| Ok(vec![launcher::start(folder, settings)?]))?.pop()?;
        let mut arguments = settings.arguments.iter().skip_while(|argument| *argument != "--requirepass");
        Some(Self { password: arguments.nth(1).cloned(), ..server })
    }

    /// The servers of a topology, which are launched in one folder. `None` as for [`start`](Self::start).
    pub(super) fn all(launch: impl FnOnce(&Path) -> Result<Vec<Process>, String>) -> Option<Vec<Self>> {
        find(launcher::PROGRAM)?;
        let started = folder("redis", &place()).and_then(|folder| Ok((launch(folder.path())?, Arc::new(folder))));
        let (processes, folder) = started.unwrap_or_else(|why| panic!("{why}"));
        let server = |process| Self { process, password: None, _folder: folder.clone() };
        Some(processes.into_iter().map(server).collect())
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
    pub async fn restart(&mut self) {
        self.kill();
        restart(&mut self.process).await.unwrap_or_else(|why| panic!("{why}"));
    }

    /// Ends the server and starts another one on the same port, for a test without a runtime.
    pub fn restart_blocking(&mut self) {
        self.kill();
        self.process = self.process.launch().start(&[]).unwrap_or_else(|why| panic!("{why}"));
    }
}

/// How long a server may take for an answer on a busy machine.
const BUSY: Duration = Duration::from_secs(10);

/// Sends commands to the server on this port of 127.0.0.1, one after the other over a connection of their own, and gives the
/// last answer. Each has to come within ten seconds.
pub async fn ask(port: u16, commands: &[&[&str]]) -> io::Result<Answer> {
    let owned = |words: &&[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let commands: Vec<_> = commands.iter().map(owned).collect();
    // In a box: the futures of tests nest deeply enough without this one.
    let answer: BoxFuture<'_, _> = Box::pin(blocking(move || resp::ask_within(BUSY, port, &commands)));
    answer.await
}
