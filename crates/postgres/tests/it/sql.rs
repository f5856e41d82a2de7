//! Statements past everything that the crate does.

use std::time::Duration;

use leasehold_postgres::tokio_postgres::{Client, NoTls, connect};
use leasehold_postgres::{LockOptions, Postgres, Wait};
use leasehold_testkit::postgres::Server;

pub(crate) async fn session(url: &str) -> Client {
    let (client, connection) = connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Runs statements, each by itself.
pub(crate) async fn sql(url: &str, statements: &[&str]) {
    let client = session(url).await;
    for statement in statements {
        client.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
}

/// The one number that a statement answers.
pub(crate) async fn number(url: &str, statement: &str) -> i64 {
    session(url).await.query_one(statement, &[]).await.unwrap().get(0)
}

/// A server with the schema.
pub(crate) async fn server(settings: &[&str]) -> Server {
    let server = Server::needed(settings).await;
    Postgres::migrate(&server.url()).await.unwrap();
    server
}

/// The statements by which the README gives a user its rights.
pub(crate) fn grants() -> &'static str {
    let (_, block) = include_str!("../../README.md").split_once("```sql").unwrap();
    block.split_once("```").unwrap().0
}

pub(crate) async fn clients(url: &str) -> [Postgres; 2] {
    [Postgres::connect(url).await.unwrap(), Postgres::connect(url).await.unwrap()]
}

pub(crate) fn patient() -> LockOptions {
    LockOptions::new().ttl(Duration::from_secs(30)).wait(Wait::UpTo(Duration::from_secs(120)))
}
