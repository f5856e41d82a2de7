use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use fred::types::Value;
use fred::types::config::Server;

/// Which node serves which hash slots: from, to (both of them too), node. In order.
pub(crate) type Slots = Vec<(u16, u16, Server)>;

/// The last hash slot.
const LAST: u16 = 16383;

/// Reads what `CLUSTER SLOTS` says. What is not understood is left out.
pub(crate) fn read(answer: &Value, asked: &Server) -> Slots {
    let mut slots: Slots = list(answer).iter().filter_map(|range| read_range(range, asked)).collect();
    slots.sort_by_key(|(from, _, _)| *from);
    slots
}

fn read_range(range: &Value, asked: &Server) -> Option<(u16, u16, Server)> {
    let [from, to, primary, ..] = list(range) else { return None };
    let slot = |value: &Value| value.as_u64().and_then(|slot| u16::try_from(slot).ok()).filter(|slot| *slot <= LAST);
    let (from, to) = (slot(from)?, slot(to)?);
    let [host, port, ..] = list(primary) else { return None };
    let port = u16::try_from(port.as_u64()?).ok().filter(|port| *port > 0)?;
    let host = host.as_str().unwrap_or_default();
    (from <= to).then(|| Some((from, to, server(&host, port, asked)?))).flatten()
}

fn list(value: &Value) -> &[Value] {
    if let Value::Array(items) = value { items } else { &[] }
}

/// A node that does not know its own name leaves it out; one whose name nobody shall know says `?`.
fn server(host: &str, port: u16, asked: &Server) -> Option<Server> {
    match host {
        "?" => None,
        "" => Some(Server::new(asked.host.clone(), port)),
        host => Some(Server::new(host, port)),
    }
}

/// Whether `CLUSTER NODES` knows a node at this address that is not on its way in or out.
pub(crate) fn lists(nodes: &str, wanted: &Server) -> bool {
    nodes.lines().any(|line| {
        let mut words = line.split(' ').skip(1);
        let (address, flags) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut parts = address.split(',');
        let (ip, port) =
            parts.next().and_then(|at| at.split('@').next()).and_then(|at| at.rsplit_once(':')).unwrap_or_default();
        let hostname = parts.next().unwrap_or_default();
        let is_one = !flags.split(',').any(|flag| matches!(flag, "handshake" | "noaddr"));
        is_one
            && port == wanted.port.to_string()
            && !wanted.host.is_empty()
            && (ip == wanted.host || hostname == wanted.host)
    })
}

/// The answer of a node that a command is to be sent elsewhere or later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirection {
    /// The slot has moved for good.
    Moved(Server),
    /// The entry has, its slot has not yet.
    Ask(Server),
    /// Some of the entries have.
    TryAgain,
}

impl Redirection {
    pub(crate) fn read(error: &DriverError, asked: &Server) -> Option<Self> {
        // What the driver itself makes up is none.
        if !matches!(error.kind(), DriverKind::Cluster | DriverKind::Unknown) {
            return None;
        }
        let mut words = error.details().split(' ');
        let (word, address) = (words.next()?, words.nth(1));
        let to = || {
            let (host, port) = address?.rsplit_once(':')?;
            server(host, port.parse().ok().filter(|port| *port > 0)?, asked)
        };
        match word {
            "MOVED" => to().map(Self::Moved),
            "ASK" => to().map(Self::Ask),
            "TRYAGAIN" => Some(Self::TryAgain),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_testkit::corpus_of_text;

    fn asked() -> Server {
        Server::new("asked", 1)
    }

    fn range(from: i64, to: i64, host: &str, port: i64) -> Value {
        let node = Value::Array(vec![host.into(), port.into(), "id".into(), Value::Array(Vec::new())]);
        Value::Array(vec![from.into(), to.into(), node.clone(), node])
    }

    #[test]
    fn slots_are_read_in_order_and_what_makes_no_sense_is_left_out() {
        let answer = Value::Array(vec![
            range(10, 20, "b", 2),
            range(0, 9, "", 3),
            range(30, 20, "c", 2),
            range(30, 16384, "c", 2),
            range(-1, 5, "c", 2),
            range(40, 50, "?", 2),
            range(40, 50, "c", 0),
            range(40, 50, "c", 65536),
            Value::Null,
            Value::Array(vec![1.into(), 2.into(), Value::Null]),
        ]);
        assert_eq!(read(&answer, &asked()), [(0, 9, Server::new("asked", 3)), (10, 20, Server::new("b", 2))]);
        assert_eq!(read(&Value::Null, &asked()), []);
    }

    #[test]
    fn redirections_are_known_by_their_first_word() {
        let read = |kind, text: &str| Redirection::read(&DriverError::new(kind, text.to_owned()), &asked());
        let (cluster, unknown) = (|text| read(DriverKind::Cluster, text), |text| read(DriverKind::Unknown, text));
        assert_eq!(cluster("MOVED 7 h:2"), Some(Redirection::Moved(Server::new("h", 2))));
        assert_eq!(cluster("MOVED 7 :2"), Some(Redirection::Moved(Server::new("asked", 2))));
        assert_eq!(cluster("ASK 7 ::1:2"), Some(Redirection::Ask(Server::new("::1", 2))));
        assert_eq!(unknown("TRYAGAIN Multiple keys request during rehashing of slot"), Some(Redirection::TryAgain));
        for text in ["MOVED", "MOVED 7", "MOVED 7 h", "MOVED 7 h:0", "MOVED 7 ?:1", "ASK 7 h:x", "ASKED 7 h:1", ""] {
            assert_eq!(cluster(text), None, "{text}");
        }
        assert_eq!(read(DriverKind::IO, "MOVED 7 h:2"), None);
    }

    #[test]
    fn only_nodes_that_belong_to_the_cluster_are_known() {
        let nodes = "07c 10.0.0.1:30004@31004,n4.example slave e7d 0 1426238317239 4 connected\n\
                     67e 10.0.0.2:30002@31002 myself,master - 0 1 2 connected 5461-10922\n\
                     292 10.0.0.3:30003@31003 handshake - 0 1 3 connected\n\
                     293 :0@0 master,noaddr - 0 1 3 disconnected\n";
        for (host, port, known) in [
            ("10.0.0.1", 30004, true),
            ("n4.example", 30004, true),
            ("10.0.0.2", 30002, true),
            ("10.0.0.2", 30004, false),
            ("10.0.0.3", 30003, false),
            ("", 0, false),
            ("", 30004, false),
            ("evil", 30004, false),
        ] {
            assert_eq!(lists(nodes, &Server::new(host, port)), known, "{host}:{port}");
        }
    }

    #[test]
    fn whatever_a_cluster_answers_it_is_a_redirection_or_none() {
        corpus_of_text(include_str!("../../corpus/redirections.txt"), |text| {
            let _ = lists(text, &asked());
            let _ = Redirection::read(&DriverError::new(DriverKind::Cluster, text.to_owned()), &asked());
        });
    }
}
