//! A `PostgreSQL` server with the schema of the backend.

use std::path::Path;

use futures::future::BoxFuture;
use leasehold_postgres::tokio_postgres::{Client, NoTls, SimpleQueryMessage, connect};
use leasehold_testkit::launch::postgres;
use tokio::runtime::Runtime;

use super::node::{Node, Program};
use super::shim::Library;
use super::store::{Shape, Store, USER};

/// What the server waits for a disk for, as one of users does.
const DURABLE: [&str; 2] = ["-c", "fsync=on"];

/// Creates the schema of the backend.
type Migrate = fn(&str) -> BoxFuture<'_, leasehold_core::Result<()>>;

pub(crate) fn start(folder: &Path, library: Option<&Library>, migrate: Migrate) -> Result<Store, String> {
    let shim = library.map(|library| library.shim(folder.join("postgres.shim"))).transpose()?;
    let node = Node::start(Program::Postgres, "postgres".to_owned(), folder.to_owned(), &DURABLE, shim)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(migrate(&postgres::url(node.port))).map_err(|error| error.to_string())?;
    for statement in [
        "CREATE ROLE locks LOGIN",
        "GRANT USAGE ON SCHEMA leasehold TO locks",
        "GRANT SELECT, INSERT, UPDATE ON leasehold.locks TO locks",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON leasehold.readers TO locks",
        "GRANT SELECT ON leasehold.holders TO locks",
    ] {
        sql(&node, &runtime, statement)?;
    }
    let address = |port: u16| format!("postgres://{USER}@127.0.0.1:{port}/leasehold?pool_max=8");
    let urls = node.links.iter().map(|link| address(link.port())).collect();
    Ok(Store { direct: address(node.port), nodes: vec![node], urls, shape: Shape::Plain })
}

/// Runs a statement as an operator who needs no link, and gives the first column as text.
pub(crate) fn sql(node: &Node, runtime: &Runtime, statement: &str) -> Result<Vec<String>, String> {
    runtime.block_on(async { ask(&operator(node).await?, statement).await })
}

/// A session past every link, with all rights.
pub(crate) async fn operator(node: &Node) -> Result<Client, String> {
    login(node, "leasehold").await
}

/// A session past every link. The error begins with the code of the server.
pub(crate) async fn login(node: &Node, user: &str) -> Result<Client, String> {
    let address = format!("postgres://{user}@127.0.0.1:{}/leasehold?sslmode=disable&connect_timeout=20", node.port);
    let (client, connection) = connect(&address, NoTls).await.map_err(|error| told(&error))?;
    tokio::spawn(connection);
    Ok(client)
}

/// The first column of the answer, as text. The error begins with the code of the server.
pub(crate) async fn ask(session: &Client, statement: &str) -> Result<Vec<String>, String> {
    let answers = session.simple_query(statement).await.map_err(|error| format!("{}: {statement}", told(&error)))?;
    let first = |answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    Ok(answers.into_iter().filter_map(first).collect())
}

fn told(error: &leasehold_postgres::tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |told| format!("{} {}", told.code().code(), told.message()))
}
