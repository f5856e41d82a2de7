use fred::types::Value;
use fred::types::config::Server;
use futures::future::join_all;
use leasehold_core::{Cursor, Error, ErrorKind, LockKey, Result};

use crate::connection::Target;
use crate::{Connection, Names, Reply, Script};

impl Connection {
    /// Some of the keys that have this part and start with `prefix`, in order, and where to go on; `None` after the
    /// last.
    ///
    /// # Errors
    /// As for [`scan`](Self::scan).
    pub async fn keys(
        &self,
        names: &Names,
        part: &str,
        prefix: &str,
        after: Option<&Cursor>,
    ) -> Result<(Vec<LockKey>, Option<Cursor>)> {
        let (found, next) = self.scan(&names.pattern(prefix, part), after).await?;
        let mut keys: Vec<LockKey> = found.iter().filter_map(|name| names.key(name, part)).collect();
        keys.sort_unstable();
        keys.dedup();
        Ok((keys, next))
    }

    /// What a script that only reads says of these names, in their order.
    ///
    /// # Errors
    /// As [`classify`](crate::classify) says.
    pub async fn inspect(&self, script: &Script, names: Vec<String>) -> Result<Vec<Reply>> {
        let batches = names.chunks(self.keys_in_a_script());
        let asked = join_all(batches.map(|names| self.run(script, names.to_vec(), [], None))).await;
        let mut seen: Vec<Reply> = Vec::with_capacity(names.len());
        for reply in asked {
            seen.extend(reply?.each());
        }
        Ok(seen)
    }

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
                let parts: Vec<Reply> = parts.into_iter().map(Reply::from).collect();
                let [position, names] = [0, 1].map(|part| parts.get(part).map_or_else(Vec::new, Reply::words));
                Ok((position.concat(), names.into_iter().map(str::to_owned).collect()))
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
