//! The stores that the workloads lock on: servers of their own, which end with them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use futures::future::{join_all, try_join_all};
use leasehold_mysql_rw::MysqlRw;
use leasehold_mysql_unique::MysqlUnique;
use leasehold_postgres::Postgres;
use leasehold_testkit::redis::{Cluster, Server};
use leasehold_testkit::{Deadline, KilledOnDrop, PATIENCE, etcd, mysql, postgres};
use tempfile::TempDir;

use crate::contenders::{Kind, Locks};
use crate::job::{Job, runtime};
use crate::load::{Pace, Result};
use crate::log::{CALLS, COMMANDS, CONNECTIONS, DEADLOCKS, MEMORY, SERVER_CPU, Sample};
use crate::machine;

/// What a workload is measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// One Redis.
    Redis,
    /// Five that know nothing of each other.
    FiveNodes,
    /// Three that share the hash slots.
    Cluster,
    /// A MariaDB whose data are in memory, so that only processors count.
    MariaDb,
    /// The same with a binary log, and 1 ms more for each fsync, as production does it.
    Binlog,
    /// It commits without waiting for its disk.
    Postgres,
    /// One member, with its data in the folder for temporary files.
    Etcd,
    Folder,
    /// An agent before one Redis.
    AgentOfRedis,
    /// An agent before a folder.
    AgentOfFolder,
}

/// A store that has been started.
pub(crate) enum Store {
    /// One, or five.
    Redis(Vec<Server>),
    Cluster(Cluster),
    MariaDb(mysql::Server),
    Postgres(postgres::Server),
    Etcd(etcd::Cluster),
    Folder(TempDir),
    Agent {
        _program: KilledOnDrop,
        folder: TempDir,
        store: Box<Store>,
    },
}

/// What a server has done since it began, and how much it has now: by the names of the figures.
type Work = BTreeMap<&'static str, f64>;

impl Store {
    /// Starts one.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn start(on: On) -> Result<Self> {
        let first_line = |why: String| why.lines().next().unwrap_or_default().to_owned();
        let runtime = runtime(0)?;
        Ok(match on {
            On::Redis | On::FiveNodes => {
                let count = if on == On::Redis { 1 } else { 5 };
                let started = runtime.block_on(join_all((0..count).map(|_| Server::start(&[]))));
                Self::Redis(started.into_iter().collect::<Option<_>>().ok_or("no redis-server")?)
            }
            On::Cluster => Self::Cluster(runtime.block_on(Cluster::start()).ok_or("no redis-server for a Cluster")?),
            On::MariaDb | On::Binlog => {
                let started = runtime.block_on(start_mariadb(on == On::Binlog));
                Self::MariaDb(started.map_err(|why| format!("no MariaDB: {}", first_line(why.to_string())))?)
            }
            On::Postgres => {
                let started = runtime.block_on(postgres::Server::start_with(&["max_connections=600"]));
                let server = started.map_err(|why| format!("no PostgreSQL: {}", first_line(why)))?;
                runtime.block_on(Postgres::migrate(&server.url()))?;
                Self::Postgres(server)
            }
            On::Etcd => {
                let started = runtime.block_on(etcd::Cluster::one_or_why(&[]));
                Self::Etcd(started.map_err(|why| format!("no etcd: {}", first_line(why)))?)
            }
            On::Folder => Self::Folder(tempfile::tempdir()?),
            On::AgentOfRedis => Self::behind_an_agent(On::Redis)?,
            On::AgentOfFolder => Self::behind_an_agent(On::Folder)?,
        })
    }

    /// Starts a store, and an agent before it, and waits until that listens.
    fn behind_an_agent(on: On) -> Result<Self> {
        let (program, store, folder) = (program()?, Box::new(Self::start(on)?), tempfile::tempdir()?);
        let url = match *store {
            Self::Folder(_) => format!("file:{}", store.locks(Kind::File).urls[0]),
            _ => store.url(),
        };
        let (policy, socket) = (folder.path().join("policy"), folder.path().join("sock"));
        fs::write(&policy, "* * keys=100000 connections=100000")?;
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o600))?;
        let mut command = Command::new(program);
        command.args(["--backend", &url, "agent", "--policy"]).arg(policy);
        command.arg("--socket").arg(&socket).stdin(Stdio::null());
        let agent = Self::Agent { _program: KilledOnDrop::spawn(&mut command)?, folder, store };
        let deadline = Deadline::after(PATIENCE);
        while UnixStream::connect(&socket).is_err() {
            if deadline.is_over() {
                return Err("the agent does not listen".into());
            }
        }
        Ok(agent)
    }

    /// Where this contender finds it.
    pub(crate) fn locks(&self, kind: Kind) -> Locks {
        let urls = match (self, kind) {
            (Self::Agent { folder, .. }, Kind::Agent | Kind::AgentLines) => {
                vec![folder.path().join("sock").display().to_string()]
            }
            (Self::Agent { store, .. }, _) => return store.locks(kind),
            // Ours and a floor have a folder each.
            (Self::Folder(folder), Kind::RawFile) => vec![folder.path().join("raw").display().to_string()],
            (Self::Folder(folder), _) => vec![folder.path().join("locks").display().to_string()],
            _ => self.urls(),
        };
        Locks { kind, urls }
    }

    pub(crate) fn url(&self) -> String {
        self.urls().swap_remove(0)
    }

    fn urls(&self) -> Vec<String> {
        match self {
            Self::Redis(servers) => servers.iter().map(Server::url).collect(),
            Self::Cluster(cluster) => vec![cluster.url()],
            Self::MariaDb(server) => vec![server.url()],
            Self::Postgres(server) => vec![server.url()],
            Self::Etcd(server) => vec![server.url()],
            Self::Folder(folder) => vec![folder.path().display().to_string()],
            Self::Agent { store, .. } => store.urls(),
        }
    }

    /// The MariaDB that it is.
    pub(crate) fn mariadb(&self) -> Result<&mysql::Server> {
        if let Self::MariaDb(server) = self { Ok(server) } else { Err("there is no MariaDB".into()) }
    }

    /// What it has done until now; nothing where it does not tell.
    ///
    /// `sends`: the commands that a client of Redis sends, if they are to be counted.
    pub(crate) fn work(&self, sends: &[&str]) -> Result<Work> {
        match self {
            // Of five, what one of them does.
            Self::Redis(servers) => work_of_all(servers, sends, servers.len() as f64),
            Self::Cluster(cluster) => work_of_all(cluster.nodes(), sends, 1.0),
            Self::MariaDb(server) => beside(work_of_mariadb(server)),
            Self::Agent { store, .. } => store.work(sends),
            Self::Postgres(_) | Self::Etcd(_) | Self::Folder(_) => Ok(Work::new()),
        }
    }

    /// Runs a job, and counts the work of the server for it.
    pub(crate) fn counted(&self, job: &Job, sends: &[&str], pace: Pace) -> Result<Sample> {
        let mut connected = Ok(Work::new());
        // What it costs to connect is no part of a cycle.
        let mut sample = job.run_after(pace, || connected = self.work(sends))?;
        sample.figures.extend(figures(&connected?, &self.work(sends)?, sample.acquisitions));
        Ok(sample)
    }

    /// Runs this while two of the five nodes are stopped in their tracks. When it returns, they have caught up with what was
    /// sent to them.
    pub(crate) fn with_two_stopped<T>(&self, run: impl FnOnce(&dyn Fn()) -> Result<T>) -> Result<T> {
        let Self::Redis(nodes) = self else { return Err("there are no five nodes".into()) };
        let two = &nodes[3..];
        let ended = run(&|| two.iter().for_each(Server::pause));
        two.iter().for_each(Server::resume);
        runtime(0)?.block_on(join_all(two.iter().map(|server| server.ask(&["PING"]))));
        ended
    }
}

/// The figures of so many cycles since the clients had connected.
pub(crate) fn figures(connected: &Work, now: &Work, cycles: usize) -> BTreeMap<&'static str, f64> {
    let figure = |(name, then): (&&'static str, &f64)| {
        let since = now.get(name)? - then;
        let figure = match *name {
            // As many as there were when all had connected.
            CONNECTIONS | MEMORY => *then,
            DEADLOCKS => since,
            _ => since / cycles.max(1) as f64,
        };
        Some((*name, figure))
    };
    connected.iter().filter_map(figure).collect()
}

fn work_of_all(servers: &[Server], sends: &[&str], shared_by: f64) -> Result<Work> {
    let mut all = Work::new();
    for work in beside(try_join_all(servers.iter().map(|server| work_of(server, sends))))? {
        for (name, figure) in work {
            *all.entry(name).or_default() += figure / shared_by;
        }
    }
    Ok(all)
}

async fn work_of(server: &Server, sends: &[&str]) -> Result<Work> {
    let info = server.ask(&["INFO", "all"]).await;
    let told = |name: &str| info.text().lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    let calls = info.text().lines().filter_map(|line| {
        let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((command, rest.split(',').next()?.parse::<f64>().ok()?))
    });
    let cpu = told("used_cpu_user:").zip(told("used_cpu_sys:")).ok_or("Redis does not tell its processor time")?;
    let mut work =
        Work::from([(SERVER_CPU, (cpu.0 + cpu.1) * 1e6), (CALLS, calls.clone().map(|(_, times)| times).sum())]);
    if !sends.is_empty() {
        work.insert(COMMANDS, calls.filter(|(command, _)| sends.contains(command)).map(|(_, times)| times).sum());
    }
    work.extend(told("connected_clients:").map(|clients| (CONNECTIONS, clients)));
    work.extend(told("used_memory:").map(|bytes| (MEMORY, bytes / 1e6)));
    Ok(work)
}

async fn work_of_mariadb(server: &mysql::Server) -> Result<Work> {
    let mut statements = 0;
    // Of all statements those of locks: connections have words of their own when they begin.
    for kind in ["Com_insert", "Com_update", "Com_delete", "Com_select", "Com_do"] {
        statements += server.status(kind).await;
    }
    let (calls, deadlocks) = (statements as f64, server.status("Innodb_deadlocks").await as f64);
    let cpu = machine::cpu_millis_of(server.pid())? * 1e3;
    Ok(Work::from([(SERVER_CPU, cpu), (CALLS, calls), (COMMANDS, calls), (DEADLOCKS, deadlocks)]))
}

/// Runs the future in a thread of its own, because its caller may be inside a runtime.
fn beside<T: Send>(asked: impl Future<Output = Result<T>> + Send) -> Result<T> {
    let ask = || runtime(0)?.block_on(asked);
    std::thread::scope(|scope| scope.spawn(ask).join()).map_err(|_| "the server does not answer")?
}

/// A MariaDB, with the tables that everybody uses.
async fn start_mariadb(binlog: bool) -> Result<mysql::Server> {
    // It takes /dev/shm for persistent memory, and would map its log instead of syncing it.
    let mut arguments = vec!["--max-connections=600", "--loose-innodb-log-file-mmap=OFF"];
    let preload;
    if binlog {
        preload = format!("LD_PRELOAD={}", slow_fsync()?.display());
        arguments.extend(["--log-bin", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=1"]);
        arguments.extend([&*preload, "FSYNC_MICROS=1000"]);
    }
    // In memory where the system has such a place: what an fsync of a disk takes depends on who else uses it.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let server = mysql::Server::start_in(&folder, &arguments).await?;
    MysqlUnique::migrate(&server.url()).await?;
    MysqlRw::migrate(&server.url()).await?;
    Ok(server)
}

/// The library that makes fsync slow.
fn slow_fsync() -> Result<PathBuf> {
    let output = machine::output();
    fs::create_dir_all(&output)?;
    let (source, library) = (output.join("slow_fsync.c"), output.join("slow_fsync.so"));
    fs::write(&source, include_str!("slow_fsync.c"))?;
    let compile =
        Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).args([&library, &source]).arg("-ldl").status();
    let compiled = compile.map_err(|_| "no C compiler for the slow fsync")?.success();
    if compiled { Ok(library) } else { Err("cc does not compile the slow fsync".into()) }
}

/// The `leasehold` program.
pub(crate) fn program() -> Result<PathBuf> {
    let built = std::env::var_os("LEASEHOLD_BENCH_PROGRAM").map(PathBuf::from).filter(|path| path.exists());
    built.ok_or_else(|| "the program: not built; cargo xtask bench builds it".into())
}
