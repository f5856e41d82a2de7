//! Starts etcd: one server, or the members of a cluster. Each has another port for its peers, as far above its own as the bus of a
//! Redis Cluster.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::place::folder;
use super::ports::{BUS, free_port};
use super::process::{Launch, Process, on_a_free_port};
use super::programs::need;
use super::settings::Settings;

/// The program of an etcd server.
pub const PROGRAM: &str = "etcd";

/// The program that operates one.
pub const CONTROL: &str = "etcdctl";

/// Starts a server on a free port, in a folder of its own below `parent`, and waits until it answers.
pub fn start(parent: &Path, settings: &Settings) -> Result<Process, String> {
    on_a_free_port(|port| started(port, parent, settings))
}

/// Starts a server as [`start`] does, which also speaks TLS on the port `tls`, with the certificate and key in these files.
pub fn start_with_tls(parent: &Path, tls: u16, [cert, key]: [&Path; 2]) -> Result<Process, String> {
    on_a_free_port(|port| {
        let clients = format!("--listen-client-urls=http://127.0.0.1:{port},https://127.0.0.1:{tls}");
        let files = [format!("--cert-file={}", cert.display()), format!("--key-file={}", key.display())];
        started(port, parent, &Settings::arguments(files).behind([clients]))
    })
}

/// Starts a cluster of this many members, and waits until each of them knows a leader.
pub fn start_cluster(size: usize, parent: &Path, settings: &Settings) -> Result<Vec<Process>, String> {
    start_cluster_with(size, parent, |ports| vec![settings.clone(); ports.len()])
}

/// The same with settings for each member, which are asked for when the ports are known: again, if one of these was taken.
pub fn start_cluster_with(
    size: usize,
    parent: &Path,
    mut settings: impl FnMut(&[u16]) -> Vec<Settings>,
) -> Result<Vec<Process>, String> {
    let mut tries = 5;
    loop {
        tries -= 1;
        let ports = (0..size).map(|_| free_port()).collect::<Result<Vec<_>, _>>()?;
        let of_each = ports.iter().zip(settings(&ports));
        let started = of_each.map(|(port, settings)| start_member(*port, &ports, parent, &settings));
        let mut members = started.collect::<Result<Vec<_>, _>>()?;
        match members.iter_mut().try_for_each(|member| member.wait_until(is_up)) {
            Err(why) if tries > 0 && why.contains("address already in use") => {}
            outcome => return outcome.map(|()| members),
        }
    }
}

/// Starts the member that listens on `port`, and returns at once, as when it is started again: without a majority, it is not healthy.
/// Of an argument that is there twice the one of `settings` counts.
fn start_member(port: u16, members: &[u16], parent: &Path, settings: &Settings) -> Result<Process, String> {
    let folder = folder(parent, "etcd", port)?;
    let for_clients = format!("http://127.0.0.1:{port}");
    let for_peers = |port: u16| format!("http://127.0.0.1:{}", peer_port(port));
    let cluster: Vec<_> = members.iter().map(|port| format!("{}={}", name(*port), for_peers(*port))).collect();
    let usual = [
        ("name", name(port)),
        ("data-dir", folder.join("data").display().to_string()),
        ("listen-client-urls", for_clients.clone()),
        ("advertise-client-urls", for_clients),
        ("listen-peer-urls", for_peers(port)),
        ("initial-advertise-peer-urls", for_peers(port)),
        ("initial-cluster", cluster.join(",")),
        ("logger", "zap".to_owned()),
        ("log-outputs", "stderr".to_owned()),
        ("log-level", "warn".to_owned()),
    ];
    let settings = settings.behind(usual.map(|(name, value)| format!("--{name}={value}")));
    Launch { program: need(PROGRAM)?, settings, port, folder, ready: |_| true }.start(&[])
}

/// The port on which the server on `port` hears other members.
pub fn peer_port(port: u16) -> u16 {
    port + BUS
}

/// The name of the member that listens on `port`.
pub fn name(port: u16) -> String {
    format!("n{port}")
}

/// Runs `etcdctl` with these arguments at the servers on these ports. Answers what it prints.
pub fn control(ports: &[u16], arguments: &[&str]) -> Result<String, String> {
    let endpoints: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut command = Command::new(need(CONTROL)?);
    command.env("ETCDCTL_API", "3").arg(format!("--endpoints={}", endpoints.join(","))).args(arguments);
    let ended = command.output().map_err(|e| format!("{CONTROL}: {e}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if ended.status.success() { Ok(said(&ended.stdout)) } else { Err(said(&ended.stderr)) }
}

/// The address of the servers on these ports, as Leasehold takes it.
pub fn url(ports: &[u16]) -> String {
    let hosts: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("etcd://{}", hosts.join(","))
}

fn started(port: u16, parent: &Path, settings: &Settings) -> Result<Process, String> {
    let mut server = start_member(port, &[port], parent, settings)?;
    // Go writes it in small letters.
    server.wait_until(is_up).map_err(|why| why.replace("address already", "Address already"))?;
    Ok(server)
}

fn is_up(server: &Process) -> bool {
    is_healthy(server.port())
}

/// Whether the server takes part in a majority.
pub fn is_healthy(port: u16) -> bool {
    get(port, "health").is_ok_and(|answer| answer.contains(r#""health":"true""#))
}

/// Whether the server says of itself that it leads.
pub fn leads(port: u16) -> bool {
    get(port, "metrics").is_ok_and(|metrics| metrics.contains("\netcd_server_is_leader 1"))
}

/// The id of the member that listens on `port`, as the servers on these ports know it.
pub fn id(asked: &[u16], port: u16) -> Result<String, String> {
    let (list, name) = (control(asked, &["member", "list"])?, name(port));
    // Such as `8e9e05c52164694d, started, n2379, …`. One that has just joined has no name yet.
    let of_it = |line: &&str| line.split(", ").nth(2) == Some(name.as_str());
    let line = list.lines().find(of_it).and_then(|line| line.split(", ").next());
    line.map(str::to_owned).ok_or_else(|| format!("{name} is no member: {list}"))
}

/// What the server answers to a `GET` of this page, such as `metrics`, within 2 s.
pub fn get(port: u16, page: &str) -> std::io::Result<String> {
    ask(port, &format!("GET /{page} HTTP/1.0\r\n\r\n"))
}

/// What the server answers to a `POST` of JSON to this page.
pub fn post(port: u16, page: &str, json: &str) -> std::io::Result<String> {
    ask(port, &format!("POST /{page} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{json}", json.len()))
}

fn ask(port: u16, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
