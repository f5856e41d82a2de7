//! The driver suite, on servers with a user who has the rights that the README names, and a password.

use std::collections::BTreeMap;

use async_trait::async_trait;
use leasehold_core::Kind;
use leasehold_core::conformance::driver::{Able, Fault, Rig, Rigged, Room, Said, Unable, never};
use leasehold_postgres::tokio_postgres::{Client, NoTls, connect};
use leasehold_postgres::{KIND, Postgres};
use leasehold_testkit::postgres::Server;

use crate::sql::{grants, number, session, sql};

pub(crate) struct Servers;

#[async_trait]
impl Rig for Servers {
    fn kind(&self) -> Kind {
        KIND
    }

    async fn start(&self, room: Room) -> Able<Box<dyn Rigged>> {
        let few = ["max_connections=8", "superuser_reserved_connections=0", "max_wal_senders=0"];
        let settings: &[_] = if room == Room::FewConnections { &few } else { &[] };
        let server = Server::start_with(settings).await.map_err(Unable::Absent)?;
        Postgres::migrate(&server.url()).await?;
        let hba = "COPY (VALUES ('host all leasehold all trust'), ('host all all all scram-sha-256')) TO ";
        let show = session(&server.url()).await.query_one("SHOW hba_file", &[]).await?;
        let statements = [
            "CREATE ROLE app LOGIN PASSWORD 'hunter2/canary'",
            grants(),
            &format!("{hba}'{}'", show.get::<_, String>(0)),
            "SELECT pg_reload_conf()",
        ];
        sql(&server.url(), &statements).await;
        Ok(Box::new(Rigging { server, taken: Vec::new() }))
    }
}

struct Rigging {
    server: Server,
    /// Sessions that keep others out.
    taken: Vec<Client>,
}

const SESSIONS: &str = "FROM pg_stat_activity WHERE usename = 'app'";

#[async_trait]
impl Rigged for Rigging {
    fn url(&self) -> String {
        self.server.url_of("app", "hunter2%2Fcanary")
    }

    fn port(&self) -> u16 {
        self.server.port()
    }

    fn pause(&self) -> Able<()> {
        self.server.pause();
        Ok(())
    }

    fn resume(&self) -> Able<()> {
        self.server.resume();
        Ok(())
    }

    async fn kill(&mut self) -> Able<()> {
        self.server.kill();
        Ok(())
    }

    async fn restart(&mut self) -> Able<()> {
        self.server.restart().await.map_err(Unable::Failed)
    }

    async fn forget(&mut self) -> Able<()> {
        sql(&self.server.url(), &["TRUNCATE leasehold.locks, leasehold.readers"]).await;
        self.server.kill();
        self.restart().await
    }

    async fn end_sessions(&self) -> Able<u64> {
        let ended = number(&self.server.url(), &format!("SELECT count(pg_terminate_backend(pid)) {SESSIONS}")).await;
        Ok(ended.try_into()?)
    }

    async fn bring(&mut self, fault: Fault) -> Able<Said> {
        let url = self.server.url();
        match fault {
            Fault::ReadOnly => {
                let read_only = "ALTER SYSTEM SET default_transaction_read_only = on";
                sql(&url, &[read_only, "SELECT pg_reload_conf()"]).await;
                // The session that it refuses is replaced, and the driver asks a new one whether it takes writes.
                Ok(&["does not allow writes"])
            }
            Fault::Full => never("a full disk needs a file system of its own"),
            Fault::NoConnectionLeft => {
                while let Ok((client, connection)) = connect(&url, NoTls).await {
                    tokio::spawn(connection);
                    self.taken.push(client);
                }
                Ok(&["max_connections", "too many clients"])
            }
            Fault::MissingRight => {
                sql(&url, &["REVOKE UPDATE ON leasehold.locks FROM app"]).await;
                Ok(&["the rights in", "permission denied"])
            }
        }
    }

    async fn mend(&mut self, fault: Fault) -> Able<()> {
        self.taken.clear();
        let statements: &[&str] = match fault {
            Fault::ReadOnly => &["ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"],
            Fault::MissingRight => &["GRANT UPDATE ON leasehold.locks TO app"],
            Fault::Full | Fault::NoConnectionLeft => return Ok(()),
        };
        sql(&format!("{}?options=-c%20default_transaction_read_only=off", self.server.url()), statements).await;
        Ok(())
    }

    async fn login(&mut self) -> Able<String> {
        Ok(self.url())
    }

    async fn fill(&self, keys: usize) -> Able<()> {
        let fill = format!(
            "INSERT INTO leasehold.locks (name, epoch) SELECT convert_to('leasehold', 'UTF8') || '\\x00' || \
             convert_to('other/' || n, 'UTF8'), 16000 FROM generate_series(1, {keys}) AS n"
        );
        sql(&self.server.url(), &[&fill, "ANALYZE leasehold.locks"]).await;
        Ok(())
    }

    async fn keeps(&self) -> Able<BTreeMap<&'static str, u64>> {
        let mut keeps = BTreeMap::new();
        for (name, counted) in [
            ("rows of keys", "FROM leasehold.locks"),
            ("rows of readers", "FROM leasehold.readers"),
            ("sessions", SESSIONS),
            ("advisory locks", "FROM pg_locks WHERE locktype = 'advisory'"),
        ] {
            let count = number(&self.server.url(), &format!("SELECT count(*) {counted}")).await;
            keeps.insert(name, count.try_into()?);
        }
        Ok(keeps)
    }
}
