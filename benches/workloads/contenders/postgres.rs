//! What is compared on PostgreSQL: a floor, and the advisory locks of sessions, through the driver that ours uses.

use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls, Statement};

use crate::load::{Contender, Key, Result};

/// As many as ours has.
const CONNECTIONS: usize = 8;

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Two updates of a row by its key. The connections are shared, and statements follow each other without waiting.
pub(crate) struct Updates(Vec<(Client, Statement)>);

impl Updates {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        let mut all = Vec::with_capacity(CONNECTIONS);
        for number in 0..CONNECTIONS {
            let client = connect(url).await?;
            if number == 0 {
                client.batch_execute(TABLE).await?;
            }
            let update = client.prepare("UPDATE floor SET n = n + 1 WHERE name = $1").await?;
            all.push((client, update));
        }
        Ok(Self(all))
    }

    async fn update(&self, key: &Key) -> Result<()> {
        let (client, update) = &self.0[key.number % self.0.len()];
        let updated = client.execute(update, &[&key.name.as_str()]).await?;
        if updated == 1 { Ok(()) } else { Err("the floor has no such row".into()) }
    }
}

/// A row for each task of the largest load.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS floor (name text PRIMARY KEY, n bigint);
    INSERT INTO floor SELECT 'bench/' || i, 0 FROM generate_series(0, 255) i ON CONFLICT DO NOTHING";

impl Contender for Updates {
    type Held = ();

    async fn acquire(&self, key: &Key) -> Result<()> {
        self.update(key).await
    }

    async fn release(&self, key: &Key, _held: ()) -> Result<()> {
        self.update(key).await
    }
}

/// A lock of a session: without lease or token, and each task needs a connection while it waits or holds.
pub(crate) struct Advisory {
    url: String,
    free: Mutex<Vec<Session>>,
}

pub(crate) struct Session {
    client: Client,
    lock: Statement,
    unlock: Statement,
}

impl Advisory {
    pub(crate) fn new(url: &str) -> Self {
        Self { url: url.to_owned(), free: Mutex::default() }
    }

    async fn session(&self) -> Result<Session> {
        if let Some(session) = self.free.lock().await.pop() {
            return Ok(session);
        }
        let client = connect(&self.url).await?;
        let lock = client.prepare("SELECT pg_advisory_lock(hashtextextended($1, 0))").await?;
        let unlock = client.prepare("SELECT pg_advisory_unlock(hashtextextended($1, 0))").await?;
        Ok(Session { client, lock, unlock })
    }
}

impl Contender for Advisory {
    type Held = Session;

    async fn acquire(&self, key: &Key) -> Result<Session> {
        let session = self.session().await?;
        session.client.query_one(&session.lock, &[&key.name.as_str()]).await?;
        Ok(session)
    }

    async fn release(&self, key: &Key, held: Session) -> Result<()> {
        let unlocked = held.client.query_one(&held.unlock, &[&key.name.as_str()]).await?;
        if !unlocked.get::<_, bool>(0) {
            return Err("the session did not hold the lock".into());
        }
        self.free.lock().await.push(held);
        Ok(())
    }
}
