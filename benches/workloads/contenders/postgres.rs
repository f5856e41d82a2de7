//! What is compared on PostgreSQL: a floor, and the advisory locks of sessions, through the driver that ours uses.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls, Statement};

use crate::load::{Contender, Result};

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
        let updated = client.execute(update, &[&&*key.name]).await?;
        if updated == 1 { Ok(()) } else { Err("the floor has no such row".into()) }
    }
}

/// A row for each task of the largest load.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS floor (name text PRIMARY KEY, n bigint);
    INSERT INTO floor SELECT 'bench/' || i, 0 FROM generate_series(0, 255) i ON CONFLICT DO NOTHING";

/// A name, and the number of its task.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    name: Arc<str>,
    number: usize,
}

impl Contender for Updates {
    type Key = Key;
    type Held = Key;

    fn key(&self, name: &str) -> Result<Key> {
        let number = name.rsplit('/').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        Ok(Key { name: name.into(), number })
    }

    async fn acquire(&self, key: &Key) -> Result<Key> {
        self.update(key).await?;
        Ok(key.clone())
    }

    async fn release(&self, held: Key) -> Result<()> {
        self.update(&held).await
    }
}

/// A lock of a session: without lease or token, and each task needs a connection while it waits or holds.
pub(crate) struct Advisory {
    url: String,
    free: Mutex<Vec<Session>>,
}

struct Session {
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

pub(crate) struct Held {
    session: Session,
    name: Arc<str>,
}

impl Contender for Advisory {
    type Key = Arc<str>;
    type Held = Held;

    fn key(&self, name: &str) -> Result<Arc<str>> {
        Ok(name.into())
    }

    async fn acquire(&self, key: &Arc<str>) -> Result<Held> {
        let session = self.session().await?;
        session.client.query_one(&session.lock, &[&&**key]).await?;
        Ok(Held { session, name: Arc::clone(key) })
    }

    async fn release(&self, held: Held) -> Result<()> {
        let unlocked = held.session.client.query_one(&held.session.unlock, &[&&*held.name]).await?;
        if !unlocked.get::<_, bool>(0) {
            return Err("the session did not hold the lock".into());
        }
        self.free.lock().await.push(held.session);
        Ok(())
    }
}
