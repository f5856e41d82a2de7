//! What makes servers unsafe for locks although they may grant them, each with the cure.

mod entries;
mod needs;
mod privileges;
mod sentinels;
mod server;

use fred::types::Value;
use leasehold_core::clock::Moment;
use leasehold_core::{BoxFuture, Clock, Error, ErrorKind, Finding, Result};

use crate::client::command::Target;
use crate::client::connection::Connection;
use crate::client::driver::DEFAULT_COMMAND_TIMEOUT;
use crate::client::endpoint::Endpoint;
use crate::client::info::Info;
use crate::client::value::text;

use self::needs::user_of;
pub use self::needs::{Form, Needs};

/// Advice for a server that refuses an operation of a lock.
pub const CURE: &str = "connect to the primary, and give the user the ACL SETUSER rule of the store's README, or \
                        let the server have more memory";

/// Checks the servers of a URL: their settings, the rights of the user, and what is stored under the names of locks.
///
/// # Errors
/// Those of connecting.
pub fn examine<'u>(url: &'u str, needs: &'static Needs) -> BoxFuture<'u, Result<Vec<Finding>>> {
    Box::pin(async move {
        let endpoint = Endpoint::parse(url)?;
        let connection = Connection::open(&endpoint, DEFAULT_COMMAND_TIMEOUT).await?;
        let mut findings = server::examine(&connection, &endpoint).await;
        findings.extend(sentinels::examine(&endpoint).await);
        let namespace = endpoint.namespace().cloned().unwrap_or_default();
        findings.extend(privileges::examine(&connection, &endpoint, &namespace, needs).await);
        findings.extend(entries::examine(&connection, user_of(&endpoint), &namespace, needs.parts).await);
        connection.close().await;
        Ok(findings)
    })
}

/// Which server answers at an address, and what its clock showed.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The id of this run of the server; empty where the user may not read it.
    pub run: String,
    /// What the server's clock showed, in µs, at some time between the two moments of our own clock.
    pub clock: (u64, Moment, Moment),
}

/// Asks one server which one it is, and what time it is.
///
/// # Errors
/// Those of connecting and of the two commands; [`Backend`](ErrorKind::Backend) for an answer that is no time.
pub fn identify(url: &str) -> BoxFuture<'_, Result<Identity>> {
    Box::pin(async move {
        let connection = Connection::open(&Endpoint::parse(url)?, DEFAULT_COMMAND_TIMEOUT).await?;
        let ours = Clock::system();
        let info = Info::of(&connection, None, &[]).await;
        let sent = ours.now();
        let time = connection.ask("TIME", &[], Target::Node(None)).await;
        let received = ours.now();
        connection.close().await;
        let micros = match time?.into_array()[..] {
            [ref seconds, ref micros] => {
                let read = |value: &Value| text(value).parse::<u64>().ok();
                read(seconds).zip(read(micros)).and_then(|(s, us)| s.checked_mul(1_000_000)?.checked_add(us))
            }
            _ => None,
        };
        let odd = || Error::new(ErrorKind::Backend, "ask Redis").detail("TIME gave no time");
        let run = info.ok().and_then(|info| info.field("run_id").map(str::to_owned)).unwrap_or_default();
        Ok(Identity { run, clock: (micros.ok_or_else(odd)?, sent, received) })
    })
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::redis::FakeRedis;

    use super::*;

    #[tokio::test]
    async fn the_clock_of_a_server_is_read_in_microseconds() {
        let time = "*2\r\n$10\r\n1700000000\r\n$3\r\n123\r\n";
        let fake = FakeRedis::start(move |words| (words == ["TIME"]).then_some(time)).await;
        assert_eq!(identify(&fake.url()).await.expect("a clock").clock.0, 1_700_000_000_000_123);
    }
}
