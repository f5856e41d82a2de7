use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use async_trait::async_trait;
use futures::future::BoxFuture;
use leasehold_core::Kind;
use leasehold_core::conformance::driver::{Able, Borrowed, Fault, Rig, Rigged, Room, Said, Unable, never};

use super::least_user::LeastUser;
use super::server::Server;
use crate::launch::resp::Answer;

/// Servers for the driver suite of a backend on Redis. They keep their data in a file, and know the user of the backend's README.
#[derive(Debug)]
pub struct Servers {
    kind: Kind,
    least: LeastUser,
    borrow: Option<Borrow>,
}

/// A locker on a client of the caller's own, which is connected to this URL.
pub type Borrow = fn(String) -> BoxFuture<'static, Able<Borrowed>>;

impl Servers {
    /// Servers of this kind, with the user of this README.
    pub fn new(kind: Kind, readme: &str) -> Self {
        Self { kind, least: LeastUser::of(readme), borrow: None }
    }

    /// Says how a client of the caller's own is lent.
    #[must_use]
    pub fn borrow(self, borrow: Borrow) -> Self {
        Self { borrow: Some(borrow), ..self }
    }
}

#[async_trait]
impl Rig for Servers {
    fn kind(&self) -> Kind {
        self.kind
    }

    async fn start(&self, room: Room) -> Able<Box<dyn Rigged>> {
        // In its arguments, so that no client meets a server that has restarted and does not know the user yet.
        let mut arguments = vec!["--user", "app", "on", ">hunter2/canary"];
        arguments.extend(self.least.rules());
        arguments.extend(["--appendonly", "yes", "--appendfsync", "always"]);
        if room == Room::FewConnections {
            arguments.extend(["--maxclients", "12"]);
        }
        let server = Server::start(&arguments).await.ok_or_else(|| Unable::Absent("no redis-server here".into()))?;
        let scheme = self.kind.schemes[0];
        // That of sessions stands before the URL of a server.
        let scheme = if self.kind.takes_session { format!("{scheme}:redis") } else { scheme.to_owned() };
        Ok(Box::new(Rigging { server, scheme, borrow: self.borrow, taken: Vec::new() }))
    }
}

struct Rigging {
    server: Server,
    scheme: String,
    borrow: Option<Borrow>,
    /// Connections that keep others out.
    taken: Vec<TcpStream>,
}

impl Rigging {
    async fn tell(&self, words: &[&str]) -> Able<()> {
        match self.server.ask(words).await {
            Answer::Refused(why) => Err(Unable::Failed(format!("{words:?}: {why}"))),
            _ => Ok(()),
        }
    }

    fn url_for(&self, scheme: &str) -> String {
        format!("{scheme}://app:hunter2%2Fcanary@127.0.0.1:{}", self.server.port())
    }
}

/// The server's answer to a `PING` on a new connection.
fn ping(port: u16) -> std::io::Result<(TcpStream, String)> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.write_all(b"PING\r\n")?;
    let mut answer = [0; 64];
    let count = stream.read(&mut answer)?;
    Ok((stream, String::from_utf8_lossy(&answer[..count]).into_owned()))
}

#[async_trait]
impl Rigged for Rigging {
    fn url(&self) -> String {
        self.url_for(&self.scheme)
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
        self.server.restart().await;
        Ok(())
    }

    async fn forget(&mut self) -> Able<()> {
        self.tell(&["FLUSHALL"]).await?;
        self.restart().await
    }

    async fn end_sessions(&self) -> Able<u64> {
        let mut ended = 0;
        for kind in ["normal", "pubsub"] {
            ended += self.server.ask(&["CLIENT", "KILL", "TYPE", kind]).await.number();
        }
        Ok(ended.try_into()?)
    }

    async fn bring(&mut self, fault: Fault) -> Able<Said> {
        match fault {
            Fault::ReadOnly => {
                // Of a primary that is not there, so that it keeps its data.
                self.tell(&["REPLICAOF", "127.0.0.1", "1"]).await?;
                Ok(&["a read-only replica"])
            }
            Fault::Full => {
                self.tell(&["CONFIG", "SET", "maxmemory", "1"]).await?;
                Ok(&["out of memory"])
            }
            Fault::NoConnectionLeft => loop {
                match ping(self.port()) {
                    Ok((stream, answer)) if answer.starts_with("+PONG") || answer.starts_with("-NOAUTH") => {
                        self.taken.push(stream);
                    }
                    _ => return Ok(&["max number of clients reached"]),
                }
            },
            Fault::MissingRight => {
                self.tell(&["ACL", "SETUSER", "app", "-eval", "-evalsha"]).await?;
                Ok(&["NOPERM"])
            }
        }
    }

    async fn mend(&mut self, fault: Fault) -> Able<()> {
        self.taken.clear();
        match fault {
            Fault::ReadOnly => self.tell(&["REPLICAOF", "NO", "ONE"]).await,
            Fault::Full => self.tell(&["CONFIG", "SET", "maxmemory", "0"]).await,
            Fault::MissingRight => self.tell(&["ACL", "SETUSER", "app", "+eval", "+evalsha"]).await,
            Fault::NoConnectionLeft => Ok(()),
        }
    }

    async fn login(&mut self) -> Able<String> {
        Ok(self.url())
    }

    async fn fill(&self, keys: usize) -> Able<()> {
        let fill = "for n = 1, ARGV[1] do redis.call('SET', '{leasehold:other/' .. n .. '}:lock', 'x') end";
        self.tell(&["EVAL", fill, "0", &keys.to_string()]).await
    }

    async fn keeps(&self) -> Able<BTreeMap<&'static str, u64>> {
        let keys = self.server.ask(&["DBSIZE"]).await.number();
        let Answer::List(channels) = self.server.ask(&["PUBSUB", "CHANNELS"]).await else { return never("no list") };
        let clients = self.server.clients().await;
        Ok(BTreeMap::from([
            ("keys", keys.try_into()?),
            ("channels", channels.len().try_into()?),
            ("clients", clients.try_into()?),
        ]))
    }

    async fn borrowed(&self) -> Able<Borrowed> {
        match self.borrow {
            Some(borrow) => borrow(self.url_for("redis")).await,
            None => never("another backend on Redis shows it"),
        }
    }
}
