use std::collections::BTreeMap;
use std::marker::PhantomData;

use async_trait::async_trait;
use leasehold_core::Kind;
use leasehold_core::conformance::driver::{Able, Fault, Rig, Rigged, Room, Said, Unable, never};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::server::Server;
use super::subject::Subject;

/// Servers for the driver suite of a backend, with a user who has the rights that the [`Subject`] names, and a password.
#[derive(Debug)]
pub struct Servers<S>(Kind, PhantomData<S>);

impl<S> Servers<S> {
    pub fn new(kind: Kind) -> Self {
        Self(kind, PhantomData)
    }
}

#[async_trait]
impl<S: Subject> Rig for Servers<S> {
    fn kind(&self) -> Kind {
        self.0
    }

    async fn start(&self, room: Room) -> Able<Box<dyn Rigged>> {
        let few: &[_] = if room == Room::FewConnections { &["--max-connections=10"] } else { &[] };
        let server = Server::start(few).await.map_err(Unable::Absent)?;
        S::migrate_at(&server.url()).await?;
        server.sql(&["CREATE USER app@'%' IDENTIFIED BY 'hunter2/canary'"]).await;
        for rights in S::RIGHTS {
            server.sql(&[&format!("GRANT {rights} TO app@'%'")]).await;
        }
        Ok(Box::new(Rigging::<S> { server, scheme: self.0.schemes[0], taken: Vec::new(), subject: PhantomData }))
    }
}

struct Rigging<S> {
    server: Server,
    scheme: &'static str,
    /// Sessions that keep others out.
    taken: Vec<Conn>,
    subject: PhantomData<S>,
}

impl<S> Rigging<S> {
    async fn numbers(&self, query: &str) -> Able<Vec<u64>> {
        let mut session = self.server.session().await.map_err(Unable::Failed)?;
        Ok(session.query(query).await?)
    }
}

const SESSIONS: &str = "FROM information_schema.processlist WHERE user = 'app'";

#[async_trait]
impl<S: Subject> Rigged for Rigging<S> {
    fn url(&self) -> String {
        self.server.url_of("app", "hunter2%2Fcanary").replacen("mysql", self.scheme, 1)
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
        self.server.sql(&[&format!("TRUNCATE leasehold.{}", S::TABLE)]).await;
        self.server.kill();
        self.restart().await
    }

    async fn end_sessions(&self) -> Able<u64> {
        let sessions = self.numbers(&format!("SELECT id {SESSIONS}")).await?;
        let mut operator = self.server.session().await.map_err(Unable::Failed)?;
        let mut ended = 0;
        for session in sessions {
            // It may have gone by itself.
            ended += u64::from(operator.query_drop(format!("KILL CONNECTION {session}")).await.is_ok());
        }
        Ok(ended)
    }

    async fn bring(&mut self, fault: Fault) -> Able<Said> {
        match fault {
            Fault::ReadOnly => {
                self.server.sql(&["SET GLOBAL read_only = 1"]).await;
                Ok(&["read-only"])
            }
            Fault::Full => never("a full disk needs a file system of its own"),
            Fault::NoConnectionLeft => {
                // One more than the limit is kept for an administrator.
                while let Ok(session) = self.server.session().await {
                    self.taken.push(session);
                }
                Ok(&["no connection left"])
            }
            Fault::MissingRight => {
                self.server.sql(&[&format!("REVOKE UPDATE ON leasehold.{} FROM app@'%'", S::TABLE)]).await;
                Ok(&["lacks a right", "denied"])
            }
        }
    }

    async fn mend(&mut self, fault: Fault) -> Able<()> {
        self.taken.clear();
        match fault {
            Fault::ReadOnly => self.server.sql(&["SET GLOBAL read_only = 0"]).await,
            Fault::MissingRight => {
                self.server.sql(&[&format!("GRANT UPDATE ON leasehold.{} TO app@'%'", S::TABLE)]).await;
            }
            Fault::Full | Fault::NoConnectionLeft => {}
        }
        Ok(())
    }

    async fn login(&mut self) -> Able<String> {
        Ok(self.url())
    }

    async fn fill(&self, keys: usize) -> Able<()> {
        let rows = S::fill(keys as u64, keys as u64);
        self.server.sql(&rows.iter().map(String::as_str).collect::<Vec<_>>()).await;
        Ok(())
    }

    async fn keeps(&self) -> Able<BTreeMap<&'static str, u64>> {
        let rows = self.numbers(&format!("SELECT COUNT(*) FROM leasehold.{}", S::TABLE)).await?;
        let sessions = self.numbers(&format!("SELECT COUNT(*) {SESSIONS}")).await?;
        let statements = self.server.status("Prepared_stmt_count").await;
        Ok(BTreeMap::from([("rows", rows[0]), ("sessions", sessions[0]), ("prepared statements", statements)]))
    }
}
