#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::kind::Tables;
#[cfg(feature = "redis")]
use crate::kind::{Finding, Health, Nodes, StoreFuture};
use crate::kind::{Kind, Target};
use crate::store::Store;

/// Every kind of store that this program was built with. A new kind needs one more entry, and nothing else in this crate.
pub(crate) const KINDS: &[Kind] = &[
    #[cfg(feature = "file")]
    Kind {
        name: "file",
        schemes: &["file"],
        aliases: &[],
        package: "leasehold-file",
        purpose: "processes of one machine, no server",
        takes_password: false,
        takes_session: false,
        capabilities: leasehold_file::FileLocks::claims,
        connect: |Target { url, .. }| {
            Box::pin(async move { leasehold_file::FileLocks::connect(url).await.map(Store::shared) })
        },
        examine: None,
        cure: "make room, or name another directory",
        tables: None,
        nodes: None,
    },
    #[cfg(feature = "redis")]
    Kind {
        name: "redis-single",
        schemes: &["redis", "rediss", "redis-sentinel", "redis-cluster"],
        aliases: &[
            "rediss-sentinel",
            "rediss-cluster",
            "valkey",
            "valkeys",
            "valkey-sentinel",
            "valkeys-sentinel",
            "valkey-cluster",
            "valkeys-cluster",
        ],
        package: "leasehold-redis-single",
        purpose: "one Redis, Sentinel or Cluster",
        takes_password: true,
        takes_session: false,
        capabilities: leasehold_redis_single::RedisSingle::claims,
        connect: |Target { url, .. }| {
            Box::pin(async move { leasehold_redis_single::RedisSingle::connect(url).await.map(Store::exclusive) })
        },
        examine: Some(of_redis),
        cure: REDIS_CURE,
        tables: None,
        nodes: None,
    },
    #[cfg(feature = "redis")]
    Kind {
        name: "redis-reentrant",
        schemes: &["reentrant"],
        aliases: &[],
        package: "leasehold-redis-reentrant",
        purpose: "one Redis, Sentinel or Cluster, for owners that may take a key again",
        takes_password: true,
        takes_session: true,
        capabilities: leasehold_redis_reentrant::RedisReentrant::claims,
        connect: |Target { url, session }| {
            Box::pin(async move {
                let url = url.strip_prefix("reentrant:").unwrap_or(url);
                let sessions = leasehold_redis_reentrant::RedisReentrant::connect(url).await?;
                Ok(Store::exclusive(match session {
                    Some(id) => sessions.session_with_id(id)?,
                    None => sessions.session(),
                }))
            })
        },
        examine: Some(of_redis),
        cure: REDIS_CURE,
        tables: None,
        nodes: None,
    },
    #[cfg(feature = "redis")]
    Kind {
        name: "redlock",
        schemes: &["redlock"],
        aliases: &[],
        package: "leasehold-redlock",
        purpose: "a majority of independent Redis servers",
        takes_password: true,
        takes_session: false,
        capabilities: leasehold_redlock::Redlock::claims,
        connect: |Target { url, .. }| {
            Box::pin(async move { leasehold_redlock::Redlock::connect(url).await.map(Store::exclusive) })
        },
        examine: Some(of_redis),
        cure: REDIS_CURE,
        tables: None,
        nodes: Some(Nodes {
            states: |url| {
                Box::pin(async move {
                    let locks = leasehold_redlock::Redlock::connect(url).await?;
                    let states = locks.node_states().await;
                    locks.close().await;
                    Ok(states.into_iter().map(finding_of).collect())
                })
            },
            heal: |url| {
                Box::pin(async move {
                    let locks = leasehold_redlock::Redlock::connect(url).await?;
                    let states = locks.repair().await;
                    locks.close().await;
                    Ok(states?.into_iter().map(finding_of).collect())
                })
            },
        }),
    },
    #[cfg(feature = "mysql")]
    Kind {
        name: "mysql-unique",
        schemes: &["mysql"],
        aliases: &[],
        package: "leasehold-mysql-unique",
        purpose: "a MySQL or MariaDB",
        takes_password: true,
        takes_session: false,
        capabilities: leasehold_mysql_unique::MysqlUnique::claims,
        connect: |Target { url, .. }| {
            Box::pin(async move { leasehold_mysql_unique::MysqlUnique::connect(url).await.map(Store::exclusive) })
        },
        examine: Some(|url| Box::pin(leasehold_mysql::examine(url))),
        cure: MYSQL_CURE,
        tables: Some(Tables {
            migrate: |url| Box::pin(leasehold_mysql_unique::MysqlUnique::migrate(url)),
            gc: |url, older_than| {
                Box::pin(async move {
                    let locks = leasehold_mysql_unique::MysqlUnique::connect(url).await?;
                    let rows = locks.gc(older_than).await;
                    locks.close().await;
                    rows
                })
            },
        }),
        nodes: None,
    },
    #[cfg(feature = "mysql")]
    Kind {
        name: "mysql-rw",
        schemes: &["mysql-rw"],
        aliases: &[],
        package: "leasehold-mysql-rw",
        purpose: "a MySQL or MariaDB, with readers beside writers",
        takes_password: true,
        takes_session: false,
        capabilities: leasehold_mysql_rw::MysqlRw::claims,
        connect: |Target { url, .. }| {
            Box::pin(async move { leasehold_mysql_rw::MysqlRw::connect(&as_mysql(url)).await.map(Store::shared) })
        },
        examine: Some(|url| Box::pin(async move { leasehold_mysql::examine(&as_mysql(url)).await })),
        cure: MYSQL_CURE,
        tables: Some(Tables {
            migrate: |url| Box::pin(async move { leasehold_mysql_rw::MysqlRw::migrate(&as_mysql(url)).await }),
            gc: |url, older_than| {
                Box::pin(async move {
                    let locks = leasehold_mysql_rw::MysqlRw::connect(&as_mysql(url)).await?;
                    let rows = locks.gc(older_than).await;
                    locks.close().await;
                    rows
                })
            },
        }),
        nodes: None,
    },
    #[cfg(feature = "postgres")]
    Kind {
        name: "postgres",
        schemes: &["postgres"],
        aliases: &["postgresql"],
        package: "leasehold-postgres",
        purpose: "a PostgreSQL, with readers beside writers",
        takes_password: true,
        takes_session: false,
        capabilities: leasehold_postgres::Postgres::claims,
        connect: |Target { url, .. }| {
            Box::pin(async move { leasehold_postgres::Postgres::connect(url).await.map(Store::shared) })
        },
        examine: Some(|url| Box::pin(leasehold_postgres::examine(url))),
        cure: "connect to the primary, and run the GRANT statements of the store's README",
        tables: Some(Tables {
            migrate: |url| Box::pin(leasehold_postgres::Postgres::migrate(url)),
            gc: |url, older_than| {
                Box::pin(async move {
                    let locks = leasehold_postgres::Postgres::connect(url).await?;
                    let rows = locks.gc(older_than).await;
                    locks.close().await;
                    rows
                })
            },
        }),
        nodes: None,
    },
];

#[cfg(feature = "redis")]
const REDIS_CURE: &str = "connect to the primary, and give the user the ACL SETUSER rule of the store's README";

#[cfg(feature = "mysql")]
const MYSQL_CURE: &str = "connect to the primary (or SET GLOBAL read_only = 0), and run GRANT SELECT, INSERT, UPDATE, \
                          DELETE ON the database's leasehold tables TO the user";

/// Examines each server that the URL names.
#[cfg(feature = "redis")]
fn of_redis(url: &str) -> StoreFuture<'_, Vec<String>> {
    Box::pin(async move {
        let servers: Vec<_> = match url.split_once(':') {
            Some(("redlock", urls)) => urls.split(',').collect(),
            Some(("reentrant", url)) => vec![url],
            _ => vec![url],
        };
        let mut warnings = Vec::new();
        for server in servers {
            warnings.extend(leasehold_redis::examine(server).await?);
        }
        Ok(warnings)
    })
}

/// The URL as the crate expects it: the scheme `mysql-rw:` is known to this program only.
#[cfg(feature = "mysql")]
fn as_mysql(url: &str) -> String {
    url.replacen("mysql-rw:", "mysql:", 1)
}

/// The state of one node of a majority, with advice for its repair.
#[cfg(feature = "redis")]
fn finding_of(state: leasehold_redlock::NodeState) -> Finding {
    use leasehold_redlock::NodeCondition as Is;

    let node = state.node;
    let (health, text) = match state.condition {
        Is::Serving => (Health::Well, format!("{node} serves")),
        Is::Reset => {
            (Health::Error, format!("{node} came back without its data and does not count: run `leasehold heal`"))
        }
        Is::SameServer(other) => (Health::Error, format!("{node} is the same server as {other}: name another one")),
        Is::Unreachable(why) => (Health::Warning, format!("{node} does not answer ({why}): start it, or replace it")),
        Is::Refused(why) => (Health::Error, format!("{node} refuses ({why}): correct its password or permissions")),
        other => (Health::Warning, format!("{node}: {other}")),
    };
    Finding { health, text }
}
