//! One server, and the links to it.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_testkit::Proxy;
use leasehold_testkit::launch::resp::{Answer, ask};
use leasehold_testkit::launch::{Process, Settings, first_bytes, mariadb, postgres, redis, socket};

use super::shim::{Library, Shim};

/// Clients reach a server over so many links, so that a fault may hit a part of them.
pub(crate) const LINKS: usize = 2;

/// How soon a server that goes on answers.
pub(super) const A_MOMENT: Duration = Duration::from_millis(250);

/// A request that PostgreSQL answers before a login.
const ASKS_FOR_TLS: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";

/// What a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Redis,
    MariaDb,
    Postgres,
    Etcd,
    /// Serves the store to clients, and has no data.
    Agent,
}

/// A server that can be ended and started again.
pub(crate) struct Node {
    pub(crate) program: Program,
    pub(crate) name: String,
    pub(crate) port: u16,
    /// Agents have none.
    pub(crate) links: Vec<Proxy>,
    /// Agents have none.
    pub(crate) shim: Option<Shim>,
    /// Where its data are; the socket of an agent.
    pub(crate) data: PathBuf,
    process: Mutex<Process>,
}

impl Node {
    /// Starts the server with these arguments, with its files in the folder of the run.
    pub(crate) fn start(program: Program, name: &str, library: &Library, arguments: &[&str]) -> Result<Self, String> {
        let (folder, shim) = (&library.folder, library.shim(name)?);
        let settings = shim.settings(arguments);
        let process = match program {
            Program::Redis => redis::start(folder, &settings),
            Program::MariaDb => mariadb::start(folder, &settings),
            _ => postgres::start(folder, &settings),
        }?;
        let data = folder.join(format!("redis-{}", process.port())).join("appendonlydir");
        Ok(Self::of(program, name.to_owned(), process, data, shim))
    }

    /// Starts an agent before the store at this URL, which it reaches over links of its own.
    pub(crate) fn agent(name: &str, parent: &Path, url: &str) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let (folder, data) = (parent.join(name), parent.join(name).join("sock"));
        let settings = Settings::arguments(["--agent", &data.display().to_string(), url]);
        let process = Mutex::new(socket::start(&program, &settings, &folder)?);
        let (program, name) = (Program::Agent, name.to_owned());
        Ok(Self { program, name, port: 0, links: Vec::new(), shim: None, data, process })
    }

    /// A server that was started.
    pub(crate) fn of(program: Program, name: String, process: Process, data: PathBuf, shim: Shim) -> Self {
        let port = process.port();
        let links = (0..LINKS).map(|_| Proxy::start(port)).collect();
        Self { program, name, port, links, shim: Some(shim), data, process: Mutex::new(process) }
    }

    /// It may have ended.
    pub(crate) fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts it again on the data that are there, with these arguments behind its own.
    pub(crate) fn revive(&self, more: &[String]) -> Result<(), String> {
        let launch = self.process().launch();
        *self.process() = launch.start(more)?;
        Ok(())
    }

    /// Removes the data of a server that is not running.
    pub(crate) fn forget(&self) -> Result<(), String> {
        fs::remove_dir_all(&self.data).map_err(|e| format!("{}: {e}", self.data.display()))
    }

    /// Whether it answers within a moment.
    pub(crate) fn answers(&self) -> bool {
        let request: &[u8] = match self.program {
            Program::Redis => b"PING\r\n",
            Program::Postgres => ASKS_FOR_TLS,
            Program::Etcd => b"GET /version HTTP/1.0\r\n\r\n",
            // It speaks first.
            Program::MariaDb => b"",
            Program::Agent => return self.greets(),
        };
        first_bytes::<1>(self.port, request, A_MOMENT).is_ok()
    }

    /// Whether it, an agent, speaks first within a moment.
    fn greets(&self) -> bool {
        let Ok(mut stream) = UnixStream::connect(&self.data) else { return false };
        stream.set_read_timeout(Some(A_MOMENT)).is_ok() && stream.read_exact(&mut [0]).is_ok()
    }

    /// Sends a command to Redis. An error that is no answer is a refusal, too.
    pub(crate) fn ask(&self, words: &[&str]) -> Answer {
        ask(self.port, &[words]).unwrap_or_else(|error| Answer::Refused(error.to_string()))
    }

    /// The same of a command that is answered with a list: its parts, and none where something else is answered.
    pub(crate) fn list(&self, words: &[&str]) -> Vec<Answer> {
        if let Answer::List(parts) = self.ask(words) { parts } else { Vec::new() }
    }

    /// Whether it is a Redis that takes writes.
    pub(crate) fn is_primary(&self) -> bool {
        self.list(&["ROLE"]).first().is_some_and(|role| role.text() == "master")
    }

    /// A number of Redis's `INFO`.
    pub(crate) fn info(&self, section: &str, name: &str) -> u64 {
        let info = self.ask(&["INFO", section]);
        let line = info.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    }
}
