//! A MariaDB whose data are in memory, or one that commits as production does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use leasehold_mysql_rw::MysqlRw;
use leasehold_mysql_unique::MysqlUnique;
use leasehold_testkit::mysql::Server;
use mysql_async::Conn;

use crate::job::runtime;
use crate::load::Result;
use crate::machine;
use crate::work::{Work, beside};

/// How durable a commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The data are in memory, so that only processors count.
    Memory,
    /// The same, with a binary log, and 1 ms more per fsync.
    Binlog,
}

impl Durability {
    pub(crate) const BOTH: [Self; 2] = [Self::Memory, Self::Binlog];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Memory => "in memory",
            Self::Binlog => "binlog + 1 ms",
        }
    }
}

/// The server and the tables that everybody uses on it.
pub(crate) struct MariaDb(Server);

impl MariaDb {
    /// Or why there is none.
    ///
    /// # Errors
    /// What broke after it had started.
    pub(crate) fn start(durability: Durability) -> Result<Result<Self, String>> {
        // It takes /dev/shm for persistent memory, and would map its log instead of syncing it.
        let mut arguments = ["--max-connections=600", "--loose-innodb-log-file-mmap=OFF"].map(String::from).to_vec();
        if durability == Durability::Binlog {
            let Some(shim) = slow_fsync()? else { return Ok(Err("no C compiler for the slow fsync".to_owned())) };
            arguments
                .extend(["--log-bin", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=1"].map(String::from));
            arguments.extend([format!("LD_PRELOAD={}", shim.display()), "FSYNC_MICROS=1000".to_owned()]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        runtime(0)?.block_on(async {
            match Server::start_in(&folder(), &arguments).await {
                Ok(server) => {
                    MysqlUnique::migrate(&server.url()).await?;
                    MysqlRw::migrate(&server.url()).await?;
                    Ok(Ok(Self(server)))
                }
                Err(why) => Ok(Err(format!("no MariaDB: {}", why.lines().next().unwrap_or_default()))),
            }
        })
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    /// Runs statements as root, one after the other.
    pub(crate) async fn sql(&self, statements: &[&str]) {
        self.0.sql(statements).await;
    }

    /// A session of root's.
    pub(crate) async fn session(&self) -> Result<Conn> {
        Ok(self.0.session().await?)
    }

    /// A number of `SHOW GLOBAL STATUS`.
    pub(crate) fn status(&self, name: &str) -> Result<u64> {
        beside(async { Ok(self.0.status(name).await) })
    }

    /// What it has done until now.
    pub(crate) fn work(&self) -> Result<Work> {
        // Of all statements those of locks: connections have words of their own when they begin.
        let kinds = ["Com_insert", "Com_update", "Com_delete", "Com_select", "Com_do"];
        let statements = kinds.iter().map(|kind| self.status(kind)).sum::<Result<u64>>()? as f64;
        let deadlocks = Some(self.status("Innodb_deadlocks")? as f64);
        let cpu_micros = self.cpu_millis()? * 1e3;
        Ok(Work { cpu_micros, calls: statements, commands: Some(statements), deadlocks, ..Work::default() })
    }

    /// Processor time that the server has used, in milliseconds.
    pub(crate) fn cpu_millis(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.pid()))?;
        // Behind the name, which may contain anything.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
        Ok((ticks(11) + ticks(12)) * 1e3 / rustix::param::clock_ticks_per_second() as f64)
    }
}

/// In memory where the system has such a place: what an fsync of a disk takes depends on who else uses it.
fn folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// The library that makes fsync slow. `None`: there is no compiler.
fn slow_fsync() -> Result<Option<PathBuf>> {
    let output = machine::output();
    fs::create_dir_all(&output)?;
    let (source, library) = (output.join("slow_fsync.c"), output.join("slow_fsync.so"));
    fs::write(&source, include_str!("slow_fsync.c"))?;
    let compile =
        Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).args([&library, &source]).arg("-ldl").status();
    match compile {
        Ok(status) if status.success() => Ok(Some(library)),
        Ok(status) => Err(format!("cc: {status}").into()),
        Err(_) => Ok(None),
    }
}
