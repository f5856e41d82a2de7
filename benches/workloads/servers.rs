//! The stores that the workloads lock on: servers of their own, which end with them.

use leasehold_postgres::Postgres;
use leasehold_testkit::etcd;
use leasehold_testkit::postgres;
use leasehold_testkit::redis::{Cluster, Server};
use tempfile::TempDir;

use crate::agent::Agent;
use crate::contenders::{Kind, Locks};
use crate::job::{Job, runtime};
use crate::load::Result;
use crate::log::Sample;
use crate::mysql::server::{Durability, MariaDb};
use crate::pace::Pace;
use crate::work::{Work, beside};

/// What a workload is measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// One Redis.
    Redis,
    /// Five that know nothing of each other.
    FiveNodes,
    /// Three that share the hash slots.
    Cluster,
    MariaDb(Durability),
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
    Redis(Server),
    FiveNodes(Vec<Server>),
    Cluster(Cluster),
    MariaDb(MariaDb),
    Postgres(postgres::Server),
    Etcd(etcd::Cluster),
    Folder(TempDir),
    Agent(Agent, Box<Store>),
}

impl Store {
    /// Or why there is none.
    ///
    /// # Errors
    /// What broke after it had started.
    pub(crate) fn start(on: On) -> Result<Result<Self, String>> {
        const NO_REDIS: &str = "no redis-server";
        let runtime = runtime(0)?;
        Ok(match on {
            On::Redis => runtime.block_on(Server::start(&[])).map(Self::Redis).ok_or_else(|| NO_REDIS.to_owned()),
            On::FiveNodes => {
                let started = runtime.block_on(futures::future::join_all((0..5).map(|_| Server::start(&[]))));
                let all: Option<Vec<Server>> = started.into_iter().collect();
                all.map(Self::FiveNodes).ok_or_else(|| format!("{NO_REDIS} for five nodes"))
            }
            On::Cluster => {
                runtime.block_on(Cluster::start()).map(Self::Cluster).ok_or_else(|| format!("{NO_REDIS} for a Cluster"))
            }
            On::MariaDb(durability) => MariaDb::start(durability)?.map(Self::MariaDb),
            On::Postgres => match runtime.block_on(postgres::Server::start_with(&["max_connections=600"])) {
                Ok(server) => {
                    runtime.block_on(Postgres::migrate(&server.url()))?;
                    Ok(Self::Postgres(server))
                }
                Err(why) => Err(format!("no PostgreSQL: {}", why.lines().next().unwrap_or_default())),
            },
            On::Etcd => runtime
                .block_on(etcd::Cluster::one_or_why(&[]))
                .map(Self::Etcd)
                .map_err(|why| format!("no etcd: {}", why.lines().next().unwrap_or_default())),
            On::Folder => Ok(Self::Folder(tempfile::tempdir()?)),
            On::AgentOfRedis => Self::behind_an_agent(On::Redis)?,
            On::AgentOfFolder => Self::behind_an_agent(On::Folder)?,
        })
    }

    fn behind_an_agent(on: On) -> Result<Result<Self, String>> {
        let store = match Self::start(on)? {
            Ok(store) => store,
            Err(why) => return Ok(Err(why)),
        };
        let url = match &store {
            Self::Folder(_) => format!("file:{}", store.locks(Kind::File).urls[0]),
            _ => store.url(),
        };
        Ok(Agent::start(&url)?.map(|agent| Self::Agent(agent, Box::new(store))))
    }

    /// Where this contender finds it.
    pub(crate) fn locks(&self, kind: Kind) -> Locks {
        let urls = match (self, kind) {
            (Self::Agent(agent, _), Kind::Agent | Kind::AgentLines) => vec![agent.socket().display().to_string()],
            (Self::Agent(_, store), _) => return store.locks(kind),
            // Ours and a floor have a folder each.
            (Self::Folder(folder), kind) => vec![folder.path().join(format!("{kind:?}")).display().to_string()],
            _ => self.urls(),
        };
        Locks { kind, urls }
    }

    pub(crate) fn url(&self) -> String {
        self.urls().swap_remove(0)
    }

    fn urls(&self) -> Vec<String> {
        match self {
            Self::Redis(server) => vec![server.url()],
            Self::FiveNodes(nodes) => nodes.iter().map(Server::url).collect(),
            Self::Cluster(cluster) => vec![cluster.url()],
            Self::MariaDb(server) => vec![server.url()],
            Self::Postgres(server) => vec![server.url()],
            Self::Etcd(server) => vec![server.url()],
            Self::Folder(folder) => vec![folder.path().display().to_string()],
            Self::Agent(_, store) => store.urls(),
        }
    }

    /// What it has done until now. `None`: it does not tell.
    ///
    /// `sends`: the commands that a client of Redis sends, if they are to be counted.
    pub(crate) fn work(&self, sends: &[&str]) -> Result<Option<Work>> {
        Ok(Some(match self {
            Self::Redis(server) => beside(work_of(server, sends))?,
            Self::FiveNodes(nodes) => all_of(nodes, sends)?.shared_by(nodes.len() as f64),
            Self::Cluster(cluster) => all_of(cluster.nodes(), sends)?,
            Self::MariaDb(server) => server.work()?,
            Self::Agent(_, store) => return store.work(sends),
            Self::Postgres(_) | Self::Etcd(_) | Self::Folder(_) => return Ok(None),
        }))
    }

    /// Runs a job, and counts the work of the server for it.
    pub(crate) fn counted(&self, job: &Job, sends: &[&str], pace: Pace) -> Result<Sample> {
        let mut connected = Ok(None);
        // What it costs to connect is no part of a cycle.
        let mut sample = job.run_after(pace, || connected = self.work(sends))?;
        if let Some((before, now)) = connected?.zip(self.work(sends)?) {
            sample.figures.extend(now.figures(before, sample.acquisitions));
        }
        Ok(sample)
    }

    /// Runs this while two of the five nodes are stopped in their tracks. When it returns, they have caught up with what was
    /// sent to them.
    pub(crate) fn with_two_stopped<T>(&self, run: impl FnOnce(&dyn Fn()) -> Result<T>) -> Result<T> {
        let Self::FiveNodes(nodes) = self else { return Err("there are no five nodes".into()) };
        let two = &nodes[3..];
        let ended = run(&|| two.iter().for_each(Server::pause));
        two.iter().for_each(Server::resume);
        runtime(0)?.block_on(futures::future::join_all(two.iter().map(|server| server.ask(&["PING"]))));
        ended
    }
}

fn all_of(nodes: &[Server], sends: &[&str]) -> Result<Work> {
    let all = beside(futures::future::try_join_all(nodes.iter().map(|node| work_of(node, sends))))?;
    let sum = |figure: fn(&Work) -> f64| all.iter().map(figure).sum();
    Ok(Work { cpu_micros: sum(|work| work.cpu_micros), calls: sum(|work| work.calls), ..Work::default() })
}

async fn work_of(server: &Server, sends: &[&str]) -> Result<Work> {
    let info = server.ask(&["INFO", "all"]).await;
    let told = |name: &str| info.text().lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    let calls = info.text().lines().filter_map(|line| {
        let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((command, rest.split(',').next()?.parse::<f64>().ok()?))
    });
    let (mut all, mut sent) = (0.0, 0.0);
    for (command, times) in calls {
        all += times;
        sent += if sends.contains(&command) { times } else { 0.0 };
    }
    let cpu = told("used_cpu_user:").zip(told("used_cpu_sys:")).ok_or("Redis does not tell its processor time")?;
    Ok(Work {
        cpu_micros: (cpu.0 + cpu.1) * 1e6,
        calls: all,
        commands: (!sends.is_empty()).then_some(sent),
        deadlocks: None,
        clients: told("connected_clients:"),
        memory_megabytes: told("used_memory:").map(|bytes| bytes / 1e6),
    })
}
