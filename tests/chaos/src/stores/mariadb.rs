//! `MariaDB` servers with the tables of the backends: one, or a primary and its replica.

use std::path::Path;
use std::sync::atomic::AtomicUsize;

use futures::future::BoxFuture;
use leasehold_testkit::Proxy;
use leasehold_testkit::launch::mariadb;
use tokio::runtime::Runtime;

use super::node::{Node, Program};
use super::shim::Library;
use super::store::{Shape, Store, USER};

/// Creates the tables of a backend.
type Migrate = fn(&str) -> BoxFuture<'_, leasehold_core::Result<()>>;

pub(crate) fn start(folder: &Path, library: Option<&Library>, migrate: Migrate) -> Result<Store, String> {
    let shim = library.map(|library| library.shim(folder.join("mariadb.shim"))).transpose()?;
    let node = Node::start(Program::MariaDb, "mariadb".to_owned(), folder.to_owned(), &[], shim)?;
    set_up(&node, &runtime()?, migrate)?;
    let urls = node.links.iter().map(|link| address(link.port())).collect();
    Ok(Store { direct: address(node.port), nodes: vec![node], urls, shape: Shape::Plain })
}

/// A primary and its replica. All connections lead to one of them, as an address that an operator moves.
pub(crate) fn start_pair(folder: &Path, migrate: Migrate) -> Result<Store, String> {
    let start = |number: usize| {
        let id = format!("--server-id={}", number + 1);
        let arguments = ["--log-bin", "--log-slave-updates", "--binlog-format=ROW", &id];
        Node::start(Program::MariaDb, format!("mariadb-{number}"), folder.to_owned(), &arguments, None)
    };
    let nodes = vec![start(0)?, start(1)?];
    let runtime = runtime()?;
    for statement in ["RESET MASTER", "SET GLOBAL gtid_slave_pos = ''", &follow(nodes[0].port), "START SLAVE"] {
        nodes[1].sql(&runtime, statement)?;
    }
    nodes[1].sql(&runtime, "SET GLOBAL read_only = 1")?;
    set_up(&nodes[0], &runtime, migrate)?;
    let moves = Proxy::start(nodes[0].port);
    let url = address(moves.port());
    let shape = Shape::Pair { address: moves, primary: AtomicUsize::new(0) };
    Ok(Store { nodes, direct: url.clone(), urls: vec![url], shape })
}

/// The statement by which a server becomes the replica of another.
pub(crate) fn follow(port: u16) -> String {
    format!(
        "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {port}, master_user = 'root', master_use_gtid = \
         slave_pos, master_connect_retry = 1"
    )
}

fn runtime() -> Result<Runtime, String> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())
}

fn address(port: u16) -> String {
    format!("mysql://{USER}@127.0.0.1:{port}/leasehold?pool_max=8")
}

/// Creates the tables and the user.
fn set_up(node: &Node, runtime: &Runtime, migrate: Migrate) -> Result<(), String> {
    let root = mariadb::url(node.port);
    runtime.block_on(migrate(&root)).map_err(|error| error.to_string())?;
    node.sql(runtime, &format!("CREATE USER {USER}@'%'"))?;
    node.sql(runtime, &format!("GRANT SELECT, INSERT, UPDATE, DELETE ON leasehold.* TO {USER}@'%'"))?;
    Ok(())
}
