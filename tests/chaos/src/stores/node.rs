//! One server, and the links to it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use leasehold_testkit::launch::resp::{Answer, ask};
use leasehold_testkit::launch::{Lifetime, Process, Settings, mariadb, postgres, redis, socket};
use leasehold_testkit::{Deadline, Proxy};

use super::shim::{Library, Shim};

/// Clients reach a server over so many links, so that a fault may hit a part of them.
pub(crate) const LINKS: usize = 2;

/// How long a server may take to read its data.
const PATIENCE: Duration = Duration::from_secs(20);

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

/// Starts a server on the data that it left, with these arguments beside its own.
pub(crate) type Starts = Box<dyn Fn(&[String]) -> Result<Process, String> + Send + Sync>;

/// A server that can be ended and started again.
pub(crate) struct Node {
    pub(crate) program: Program,
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) links: Vec<Proxy>,
    /// Agents have none.
    pub(crate) shim: Option<Shim>,
    /// Where its data are; the socket of an agent.
    pub(crate) data: PathBuf,
    starts: Starts,
    process: Mutex<Option<Process>>,
}

impl Node {
    /// Starts the server with these arguments, with its files in the folder of the run.
    pub(crate) fn start(program: Program, name: &str, library: &Library, arguments: &[&str]) -> Result<Self, String> {
        let (folder, shim) = (library.folder.clone(), library.shim(name)?);
        let settings = shim.settings(arguments);
        let process = match program {
            Program::Redis => redis::start(&folder, &settings, Lifetime::WithOwner),
            Program::MariaDb => mariadb::start(&folder, &settings, Lifetime::WithOwner),
            _ => postgres::start(&folder, &settings, Lifetime::WithOwner),
        }?;
        let port = process.port();
        let data = folder.join(format!("redis-{port}")).join("appendonlydir");
        let starts = move |more: &[String]| {
            let mut settings = settings.clone();
            settings.arguments.extend_from_slice(more);
            match program {
                Program::Redis => redis::start_on(port, &folder, &settings, Lifetime::WithOwner),
                Program::MariaDb => mariadb::start_on(port, &folder, &settings, Lifetime::WithOwner),
                _ => postgres::start_on(port, &folder, &settings, Lifetime::WithOwner),
            }
        };
        Ok(Self::of(program, name.to_owned(), process, data, shim, Box::new(starts)))
    }

    /// Starts an agent before the store at this URL, which it reaches over links of its own.
    pub(crate) fn agent(name: &str, parent: &Path, url: &str) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let (folder, data) = (parent.join(name), parent.join(name).join("sock"));
        let (settings, at) = (Settings::arguments(&["--agent", &data.display().to_string(), url]), data.clone());
        let starts = move |_: &[String]| socket::start(&program, &settings, &at, &folder, Lifetime::WithOwner);
        let (name, process) = (name.to_owned(), Mutex::new(Some(starts(&[])?)));
        let (program, starts) = (Program::Agent, Box::new(starts));
        Ok(Self { program, name, port: 0, links: Vec::new(), shim: None, data, starts, process })
    }

    /// A server that was started.
    pub(crate) fn of(
        program: Program,
        name: String,
        process: Process,
        data: PathBuf,
        shim: Shim,
        starts: Starts,
    ) -> Self {
        let port = process.port();
        let links = (0..LINKS).map(|_| Proxy::start(port)).collect();
        Self { program, name, port, links, shim: Some(shim), data, starts, process: Mutex::new(Some(process)) }
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process id, or 0.
    pub(crate) fn pid(&self) -> u32 {
        self.process().as_ref().map_or(0, Process::id)
    }

    pub(crate) fn pause(&self) {
        if let Some(process) = &*self.process() {
            process.pause();
        }
    }

    pub(crate) fn resume(&self) {
        if let Some(process) = &*self.process() {
            process.resume();
        }
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(&self) {
        drop(self.process().take());
    }

    /// Starts it again on the data that are there.
    pub(crate) fn revive(&self) -> Result<(), String> {
        self.revive_with(&[])
    }

    /// The same with these arguments beside its own.
    pub(crate) fn revive_with(&self, arguments: &[String]) -> Result<(), String> {
        let started = (self.starts)(arguments)?;
        *self.process() = Some(started);
        let deadline = Deadline::after(PATIENCE);
        // A server that still reads its data answers, too.
        while self.program == Program::Redis && self.ask(&["PING"]).text() != "PONG" {
            if deadline.is_over() {
                return Err(format!("{} has not read its data within {PATIENCE:?}", self.name));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Removes the data of a server that is not running.
    pub(crate) fn forget(&self) -> Result<(), String> {
        fs::remove_dir_all(&self.data).map_err(|e| format!("{}: {e}", self.data.display()))
    }

    /// Whether it answers within a moment.
    pub(crate) fn answers(&self) -> bool {
        let greeted = || -> std::io::Result<()> {
            if self.program == Program::Agent {
                let mut stream = UnixStream::connect(&self.data)?;
                stream.set_read_timeout(Some(Duration::from_millis(250)))?;
                return stream.read_exact(&mut [0]);
            }
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(Duration::from_millis(250)))?;
            // MariaDB speaks first.
            match self.program {
                Program::Redis => stream.write_all(b"PING\r\n")?,
                Program::Postgres => stream.write_all(ASKS_FOR_TLS)?,
                Program::Etcd => stream.write_all(b"GET /version HTTP/1.0\r\n\r\n")?,
                Program::MariaDb | Program::Agent => {}
            }
            stream.read_exact(&mut [0])
        };
        greeted().is_ok()
    }

    /// Sends a command to Redis. An error that is no answer is a refusal, too.
    pub(crate) fn ask(&self, words: &[&str]) -> Answer {
        ask(self.port, &[words]).unwrap_or_else(|error| Answer::Refused(error.to_string()))
    }

    /// Whether it is a Redis that takes writes.
    pub(crate) fn is_primary(&self) -> bool {
        matches!(self.ask(&["ROLE"]), Answer::List(parts) if parts.first().is_some_and(|role| role.text() == "master"))
    }

    /// A number of Redis's `INFO`.
    pub(crate) fn info(&self, section: &str, name: &str) -> u64 {
        let info = self.ask(&["INFO", section]);
        let line = info.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    }
}
