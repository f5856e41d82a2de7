use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

/// A Redis Cluster node listens on this much above its port, too.
pub(super) const BUS: u16 = 10_000;

/// Ports that this process has given out, so that two servers that start side by side never share one.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port that is free, as is the one of the cluster bus above it.
///
/// Another program may take it before the server does: the start of a server is tried again then.
pub fn free_port() -> Result<u16, String> {
    let mut given = GIVEN.lock().map_err(|e| e.to_string())?;
    for _ in 0..1000 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| format!("bind: {e}"))?;
        let port = listener.local_addr().map_err(|e| format!("bind: {e}"))?.port();
        let Some(bus) = port.checked_add(BUS) else { continue };
        let taken = given.contains(&port) || given.contains(&bus);
        if !taken && TcpListener::bind((Ipv4Addr::LOCALHOST, bus)).is_ok() {
            given.extend([port, bus]);
            return Ok(port);
        }
    }
    Err("no free pair of ports on 127.0.0.1".into())
}

/// The first bytes that the server on this port says, within this time, after it was told this.
pub fn first_bytes<const N: usize>(port: u16, told: &[u8], patience: Duration) -> std::io::Result<[u8; N]> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(told)?;
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
