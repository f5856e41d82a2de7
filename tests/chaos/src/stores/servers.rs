//! `MariaDB` and `PostgreSQL` with the tables of a backend.

use std::sync::atomic::AtomicUsize;

use leasehold_core::Kind;
use leasehold_testkit::Proxy;
use leasehold_testkit::launch::{mariadb, postgres};
use tokio::runtime::Builder;

use super::node::{Node, Program};
use super::session::{USER, sql};
use super::shim::Library;
use super::store::{Shape, Store};

/// What the server waits for a disk for, as one of users does.
const DURABLE: [&str; 2] = ["-c", "fsync=on"];

pub(crate) fn start_mariadb(library: &Library, kind: &Kind) -> Result<Store, String> {
    one(Node::start(Program::MariaDb, "mariadb", library, &[])?, kind)
}

pub(crate) fn start_postgres(library: &Library, kind: &Kind) -> Result<Store, String> {
    one(Node::start(Program::Postgres, "postgres", library, &DURABLE)?, kind)
}

fn one(node: Node, kind: &Kind) -> Result<Store, String> {
    set_up(&node, kind)?;
    let urls = node.links.iter().map(|link| address(&node, link.port())).collect();
    Ok(Store { direct: address(&node, node.port), nodes: vec![node], urls, shape: Shape::Plain })
}

/// A primary and its replica. All connections lead to one of them, as an address that an operator moves.
pub(crate) fn start_mariadb_pair(library: &Library, kind: &Kind) -> Result<Store, String> {
    let start = |number: usize| {
        let id = format!("--server-id={}", number + 1);
        let arguments = ["--log-bin", "--log-slave-updates", "--binlog-format=ROW", &id];
        Node::start(Program::MariaDb, &format!("mariadb-{number}"), library, &arguments)
    };
    let nodes = vec![start(0)?, start(1)?];
    let begin = ["RESET MASTER", "SET GLOBAL gtid_slave_pos = ''", &mariadb::follow(nodes[0].port), "START SLAVE"];
    sql(&nodes[1], &begin)?;
    sql(&nodes[1], &["SET GLOBAL read_only = 1"])?;
    set_up(&nodes[0], kind)?;
    let moves = Proxy::start(nodes[0].port);
    let url = address(&nodes[0], moves.port());
    Ok(Store::at(url, nodes, Shape::Pair { address: moves, primary: AtomicUsize::new(0) }))
}

fn address(node: &Node, port: u16) -> String {
    let scheme = if node.program == Program::Postgres { "postgres" } else { "mysql" };
    format!("{scheme}://{USER}@127.0.0.1:{port}/leasehold?pool_max=8")
}

/// Creates the tables and the user.
fn set_up(node: &Node, kind: &Kind) -> Result<(), String> {
    let tables = kind.tables.ok_or("the backend has no tables")?;
    let root = if node.program == Program::Postgres { postgres::url(node.port) } else { mariadb::url(node.port) };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on((tables.migrate)(&root)).map_err(|error| error.to_string())?;
    let rights = match node.program {
        Program::Postgres => &[
            "CREATE ROLE locks LOGIN",
            "GRANT USAGE ON SCHEMA leasehold TO locks",
            "GRANT SELECT, INSERT, UPDATE ON leasehold.locks TO locks",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON leasehold.readers TO locks",
            "GRANT SELECT ON leasehold.holders TO locks",
        ][..],
        _ => &["CREATE USER locks@'%'", "GRANT SELECT, INSERT, UPDATE, DELETE ON leasehold.* TO locks@'%'"],
    };
    sql(node, rights).map(drop)
}
