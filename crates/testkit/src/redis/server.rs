use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::sleep;

use super::ask::{Answer, ask};

/// A `redis-server` of one's own.
#[derive(Debug)]
pub struct Server {
    port: u16,
    folder: TempDir,
    arguments: Vec<String>,
    password: Option<String>,
    process: Child,
}

impl Server {
    /// Starts one without persistence, with further arguments, and waits until it answers.
    ///
    /// `None`, with the reason on standard error: it is not installed.
    ///
    /// # Panics
    /// When it is installed and does not start.
    pub async fn start(arguments: &[&str]) -> Option<Self> {
        if !is_installed("redis-server", "--version") {
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary directory");
        let password = arguments.iter().skip_while(|word| **word != "--requirepass").nth(1).map(ToString::to_string);
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        // Somebody else may take the port before the server does.
        for _ in 0..10 {
            let port = free_port();
            let mut process = spawn(port, &folder, &arguments);
            if answers(port, &mut process).await {
                return Some(Self { port, folder, arguments, password, process });
            }
            end(&mut process);
        }
        panic!("redis-server does not start");
    }

    /// Where it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How to connect as the default user.
    pub fn url(&self) -> String {
        let login = self.password.as_ref().map(|password| format!(":{password}@")).unwrap_or_default();
        format!("redis://{login}127.0.0.1:{}", self.port)
    }

    /// Has it serve TLS too, on the port that this returns, with these files of a CA and of its own certificate and key,
    /// and ask clients for certificates as `clients` says: `yes`, `no` or `optional`. `None`, with the reason on standard error: it was built without.
    ///
    /// # Panics
    /// When it was built with TLS and refuses.
    #[allow(clippy::print_stderr, reason = "a test that cannot run says why")]
    pub async fn serve_tls(&self, [ca, cert, key]: [&Path; 3], clients: &str) -> Option<u16> {
        if self.ask(&["CONFIG", "GET", "tls-port"]).await == Answer::List(Vec::new()) {
            eprintln!("not run: redis-server was built without TLS");
            return None;
        }
        let file = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
        let port = free_port();
        let settings = ["tls-cert-file", &file(cert), "tls-key-file", &file(key), "tls-ca-cert-file", &file(ca)];
        let port_number = port.to_string();
        let command =
            [&["CONFIG", "SET"], &settings[..], &["tls-auth-clients", clients, "tls-port", &port_number]].concat();
        assert_eq!(self.ask(&command).await, Answer::Text("OK".into()));
        Some(port)
    }

    /// Asks it on a connection of its own.
    ///
    /// # Panics
    /// When it does not answer.
    pub async fn ask(&self, words: &[&str]) -> Answer {
        let answer = match &self.password {
            Some(password) => ask(self.port, &[&["AUTH", password], words]).await,
            None => ask(self.port, &[words]).await,
        };
        answer.expect("the test's server answers")
    }

    /// How often it has carried out a command, such as `evalsha`, and what scripts did counts too.
    pub async fn calls(&self, command: &str) -> u64 {
        let stats = self.ask(&["INFO", "commandstats"]).await;
        let line = stats
            .text()
            .lines()
            .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls="))?.split(',').next());
        line.and_then(|calls| calls.parse().ok()).unwrap_or(0)
    }

    /// How many clients are connected, beside the one that asks.
    pub async fn clients(&self) -> usize {
        self.ask(&["CLIENT", "LIST"]).await.text().lines().count() - 1
    }

    /// Stops it in its tracks: connections stay open, nothing is answered.
    pub fn pause(&self) {
        signal(&self.process, Signal::STOP);
    }

    /// Lets it go on, with all that was sent meanwhile.
    pub fn resume(&self) {
        signal(&self.process, Signal::CONT);
    }

    /// Ends it, and with it all that it kept.
    pub fn kill(&mut self) {
        end(&mut self.process);
    }

    /// Ends it and starts another on the same port.
    ///
    /// # Panics
    /// When that does not start.
    pub async fn restart(&mut self) {
        self.kill();
        self.process = spawn(self.port, &self.folder, &self.arguments);
        assert!(answers(self.port, &mut self.process).await, "redis-server does not start again");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

#[allow(clippy::print_stderr, reason = "a test that cannot run says why")]
pub(super) fn is_installed(program: &str, argument: &str) -> bool {
    let found = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        eprintln!("not run: {program} is not installed");
    }
    found.is_ok()
}

fn spawn(port: u16, folder: &TempDir, arguments: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    if arguments.first().is_some_and(|first| first == "--sentinel") {
        // A Sentinel keeps its state in its configuration file.
        let file = folder.path().join("sentinel.conf");
        std::fs::write(&file, "").expect("a configuration file");
        command.arg(file);
    }
    let port = port.to_string();
    command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
    command.arg("--dir").arg(folder.path()).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("redis-server starts")
}

/// Whether it comes to answer; not if it ended.
async fn answers(port: u16, process: &mut Child) -> bool {
    loop {
        if !matches!(process.try_wait(), Ok(None)) {
            return false;
        }
        // Any answer will do: it may want a password.
        if ask(port, &[&["PING"]]).await.is_ok() {
            return matches!(process.try_wait(), Ok(None));
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// One that is free, as is the port of the Cluster's bus above it.
fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        if port.checked_add(10_000).is_some_and(|bus| TcpListener::bind((Ipv4Addr::LOCALHOST, bus)).is_ok()) {
            return port;
        }
    }
}

fn signal(process: &Child, signal: Signal) {
    if let Some(pid) = Pid::from_raw(process.id().cast_signed()) {
        // It may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}

fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}
