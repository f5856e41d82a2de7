use fred::types::Value;
use fred::types::config::Server;
use leasehold_core::{Cursor, Error, ErrorKind, Result};

use crate::client::command::Target;
use crate::client::connection::Connection;
use crate::client::value::utf8;

impl Connection {
    /// Some names that match, and where to go on; `None` after the last.
    ///
    /// A name that exists all along comes at least once. In a Cluster one primary is asked after the other.
    pub(crate) async fn scan(&self, pattern: &str, after: Option<&Cursor>) -> Result<(Vec<String>, Option<Cursor>)> {
        self.scan_at_most(pattern, after, 1_000_000_000 / EXAMINED).await
    }

    /// Scans at most `most` times, counted through all pages: with a server that always answers that there is more, a listing
    /// would never end.
    async fn scan_at_most(
        &self,
        pattern: &str,
        after: Option<&Cursor>,
        most: u64,
    ) -> Result<(Vec<String>, Option<Cursor>)> {
        /// So many steps through a keyspace in which nothing matches, and the caller gets an empty page.
        const STEPS: usize = 16;
        let nodes = self.nodes();
        let mut place = match after {
            Some(cursor) => Place::read(cursor)?,
            None => Place { node: String::new(), position: "0".into(), steps: 0 },
        };
        let mut names = Vec::new();
        for _ in 0..STEPS {
            // A node that is gone by now is passed over.
            let Some((node, server)) = nodes.iter().find(|(node, _)| *node >= place.node) else {
                return Ok((names, None));
            };
            if *node != place.node {
                place = Place { node: node.clone(), position: "0".into(), ..place };
            }
            if place.steps >= most {
                let detail = format!("SCAN came to no end within {} entries", most.saturating_mul(EXAMINED));
                return Err(Error::new(ErrorKind::Backend, "ask Redis").detail(detail));
            }
            place.steps += 1;
            let (position, found) = self.scan_step(pattern, &place.position, server.clone()).await?;
            names.extend(found);
            if position != "0" {
                place.position = position;
            } else if let Some((next, _)) = nodes.iter().find(|(next, _)| next > node) {
                place = Place { node: next.clone(), position, ..place };
            } else {
                return Ok((names, None));
            }
            if !names.is_empty() {
                break;
            }
        }
        Ok((names, Some(place.cursor())))
    }

    async fn scan_step(&self, pattern: &str, from: &str, node: Option<Server>) -> Result<(String, Vec<String>)> {
        let count = EXAMINED.to_string();
        let answer = self.ask("SCAN", &[from, "MATCH", pattern, "COUNT", &count], Target::Node(node)).await?;
        let odd = || Error::new(ErrorKind::Backend, "ask Redis").detail("SCAN gave no position with a list of names");
        let Value::Array(parts) = answer else { return Err(odd()) };
        let [position, Value::Array(names)] = &parts[..] else { return Err(odd()) };
        let position = utf8(position).filter(|position| is_position(position)).ok_or_else(odd)?;
        if names.iter().any(|name| name.as_bytes().is_none()) {
            return Err(odd());
        }
        // What is not UTF-8 is not ours.
        Ok((position.to_owned(), names.iter().filter_map(utf8).map(str::to_owned).collect()))
    }

    /// In an order that two calls agree on. The only node of a server that is not a Cluster has no name.
    fn nodes(&self) -> Vec<(String, Option<Server>)> {
        let named = |node: Option<Server>| (node.as_ref().map(ToString::to_string).unwrap_or_default(), node);
        let mut nodes: Vec<_> = self.primaries().into_iter().map(named).collect();
        nodes.sort_by(|(a, _), (b, _)| a.cmp(b));
        nodes
    }
}

/// How many entries a server examines in one step, or about that.
const EXAMINED: u64 = 500;

fn is_position(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A node, the place in its keyspace, and how many steps led there, in a cursor `node position steps`.
struct Place {
    node: String,
    position: String,
    steps: u64,
}

impl Place {
    fn read(cursor: &Cursor) -> Result<Self> {
        let read = || {
            let mut parts = cursor.0.rsplitn(3, ' ');
            let steps = parts.next()?.parse().ok()?;
            let position = parts.next().filter(|position| is_position(position))?.to_owned();
            Some(Self { node: parts.next()?.to_owned(), position, steps })
        };
        read().ok_or_else(|| Error::new(ErrorKind::InvalidOptions, "list").detail("no list gave this cursor"))
    }

    fn cursor(&self) -> Cursor {
        Cursor(format!("{} {} {}", self.node, self.position, self.steps))
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::redis::FakeRedis;

    use super::*;
    use crate::client::driver::DEFAULT_COMMAND_TIMEOUT;
    use crate::client::endpoint::Endpoint;

    #[tokio::test]
    async fn a_scan_without_end_is_given_up() {
        const MOST: u64 = 1000;
        // Never the same place twice, and a name now and then.
        let fake = FakeRedis::start(|words| match words {
            ["SCAN", from, ..] => {
                let next = from.parse::<u64>().unwrap_or(0) + 1;
                let names = if next % 50 == 0 { "*1\r\n$1\r\na\r\n" } else { "*0\r\n" };
                Some(format!("*2\r\n${}\r\n{next}\r\n{names}", next.to_string().len()))
            }
            _ => None,
        })
        .await;
        let endpoint = Endpoint::parse(&fake.url()).expect("a good URL");
        let connection = Connection::open(&endpoint, DEFAULT_COMMAND_TIMEOUT).await.expect("a connection");
        let (mut pages, mut after) = (0, None);
        let error = loop {
            match connection.scan_at_most("*", after.as_ref(), MOST).await {
                Ok((_, next)) => after = Some(next.expect("there is always more")),
                Err(error) => break error,
            }
            pages += 1;
            assert!(pages <= MOST, "it would never end");
        };
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains("no end within 500000 entries"), "{error}");
        let steps = fake.received().iter().filter(|words| words[0] == "SCAN").count();
        assert_eq!(steps, 1000);
    }
}
