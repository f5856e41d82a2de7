//! Three members of etcd. Each hears the others over a way of its own; clients reach each over its links.

use leasehold_testkit::Proxy;
use leasehold_testkit::launch::{Process, Settings, etcd};

use super::node::{LINKS, Node, Program};
use super::shim::{Library, Shim};
use super::store::{Shape, Store};

const MEMBERS: usize = 3;

/// A member that is started on no data joins the others, and founds nothing.
pub(crate) const JOINS: &str = "--initial-cluster-state=existing";

pub(crate) fn start(library: &Library) -> Result<Store, String> {
    let folder = &library.folder;
    let shims = (0..MEMBERS).map(|number| library.shim(&format!("etcd-{number}"))).collect::<Result<Vec<_>, _>>()?;
    let mut ways = Vec::new();
    let of_each = |ports: &[u16]| {
        ways = ports.iter().map(|port| Proxy::start(etcd::peer_port(*port))).collect();
        (0..MEMBERS).map(|number| of_member(number, ports, &ways, &shims[number])).collect()
    };
    let processes = etcd::start_cluster_with(MEMBERS, folder, of_each)?;
    let ports: Vec<u16> = processes.iter().map(Process::port).collect();
    let all = processes.into_iter().zip(shims).enumerate();
    let node = |(number, (process, shim)): (usize, (Process, Shim))| {
        let data = folder.join(format!("etcd-{}", process.port())).join("data");
        Node::of(Program::Etcd, format!("etcd-{number}"), process, data, shim)
    };
    let nodes: Vec<Node> = all.map(node).collect();
    let url = |link: usize| etcd::url(&nodes.iter().map(|node| node.links[link].port()).collect::<Vec<_>>());
    let urls = (0..LINKS).map(url).collect();
    Ok(Store { direct: etcd::url(&ports), nodes, urls, shape: Shape::Members { ways } })
}

/// Where the others hear a member, and how its disk is slowed down.
fn of_member(number: usize, ports: &[u16], ways: &[Proxy], shim: &Shim) -> Settings {
    let named = |(port, way): (&u16, &Proxy)| format!("{}={}", etcd::name(*port), address(way));
    let all: Vec<String> = ports.iter().zip(ways).map(named).collect();
    let mut settings = shim.settings(&[
        &format!("--initial-cluster={}", all.join(",")),
        &format!("--initial-advertise-peer-urls={}", address(&ways[number])),
    ]);
    // A program in Go calls the kernel, and not the C library.
    settings.variables.push("SHIM_TRAPS=1".to_owned());
    settings
}

/// The address of a member for the others.
pub(crate) fn address(way: &Proxy) -> String {
    format!("http://127.0.0.1:{}", way.port())
}
