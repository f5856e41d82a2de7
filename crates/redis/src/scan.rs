use fred::types::Value;
use fred::types::config::Server;
use leasehold_core::{Cursor, Error, ErrorKind, Result};

use crate::Connection;
use crate::connection::Target;
use crate::script::Reply;

impl Connection {
    /// Some names that match, and where to go on; `None` after the last.
    ///
    /// A name that exists all along comes at least once. In a Cluster one primary is asked after the other.
    ///
    /// # Errors
    /// As [`classify`](crate::classify) says; [`InvalidOptions`](ErrorKind::InvalidOptions) for a cursor that no scan gave.
    pub async fn scan(&self, pattern: &str, after: Option<&Cursor>) -> Result<(Vec<String>, Option<Cursor>)> {
        /// So many steps through a keyspace in which nothing matches, and the caller gets an empty page.
        const STEPS: usize = 16;
        let nodes = self.nodes();
        let mut place = match after {
            Some(cursor) => Place::read(cursor)?,
            None => Place { node: String::new(), position: "0".into() },
        };
        let mut names = Vec::new();
        for _ in 0..STEPS {
            // A node that is gone by now is passed over.
            let Some((node, server)) = nodes.iter().find(|(node, _)| *node >= place.node) else {
                return Ok((names, None));
            };
            if *node != place.node {
                place = Place { node: node.clone(), position: "0".into() };
            }
            let (position, found) = self.scan_step(pattern, &place.position, server.clone()).await?;
            names.extend(found);
            if position != "0" {
                place.position = position;
            } else if let Some((next, _)) = nodes.iter().find(|(next, _)| next > node) {
                place = Place { node: next.clone(), position };
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
        let arguments = [from, "MATCH", pattern, "COUNT", "500"].map(Value::from).to_vec();
        let answer = self.send("SCAN", arguments, Target::Node(node), self.command_timeout()).await?;
        match answer {
            Value::Array(parts) => {
                let mut parts = parts.into_iter().map(Reply::from);
                let position = parts.next().and_then(|position| position.words().pop()).unwrap_or_default();
                Ok((position, parts.next().map(Reply::words).unwrap_or_default()))
            }
            _ => Err(Error::new(ErrorKind::Backend, "ask Redis").detail("SCAN gave no list")),
        }
    }

    /// In an order that two calls agree on. The only node of a server that is not a Cluster has no name.
    fn nodes(&self) -> Vec<(String, Option<Server>)> {
        let named = |node: Option<Server>| (node.as_ref().map(ToString::to_string).unwrap_or_default(), node);
        let mut nodes: Vec<_> = self.primaries().into_iter().map(named).collect();
        nodes.sort_by(|(a, _), (b, _)| a.cmp(b));
        nodes
    }
}

/// A node and the place in its keyspace, in a cursor `node position`.
struct Place {
    node: String,
    position: String,
}

impl Place {
    fn read(cursor: &Cursor) -> Result<Self> {
        let place = cursor.0.rsplit_once(' ').filter(|(_, position)| {
            !position.is_empty() && position.bytes().all(|byte| byte.is_ascii_digit()) && position.len() <= 20
        });
        let (node, position) =
            place.ok_or_else(|| Error::new(ErrorKind::InvalidOptions, "list").detail("no list gave this cursor"))?;
        Ok(Self { node: node.to_owned(), position: position.to_owned() })
    }

    fn cursor(&self) -> Cursor {
        Cursor(format!("{} {}", self.node, self.position))
    }
}
