use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use leasehold_core::{Error, ErrorKind, Secrets};

use crate::client::secrets;

/// What an error of the driver, or a refusal of the server, means for the command that got it.
///
/// `Unavailable`: certainly not carried out, and worth another try. `Indeterminate`: it may have been carried out.
/// `Backend`: refused for good.
pub(crate) fn classify(error: &DriverError) -> ErrorKind {
    if let Some(refusal) = refusal(error) {
        return refusal.kind();
    }
    match error.kind() {
        DriverKind::Config | DriverKind::Url => ErrorKind::InvalidOptions,
        // Never left this process, or was sent back unexecuted too often.
        DriverKind::Backpressure | DriverKind::Routing | DriverKind::Cluster | DriverKind::Sentinel => {
            ErrorKind::Unavailable
        }
        DriverKind::Unknown if NEVER_SENT.contains(&error.details()) => ErrorKind::Unavailable,
        DriverKind::Auth | DriverKind::InvalidArgument | DriverKind::InvalidCommand => ErrorKind::Backend,
        #[cfg(feature = "tls-rustls")]
        DriverKind::Tls => ErrorKind::Backend,
        DriverKind::IO if is_about_a_certificate(error) => ErrorKind::Backend,
        _ => ErrorKind::Indeterminate,
    }
}

/// The error of a command, for the engine, which adds operation, backend and key.
pub(crate) fn failed(error: &DriverError, secrets: &Secrets) -> Error {
    let cause = secrets::keep_out(secrets, error);
    let advice = refusal(error).map_or_else(|| why_unanswered(error), Refusal::advice);
    // As the server said it: it names what it cannot do.
    let words =
        advice.into_iter().chain([cause.details()]).filter(|words| !words.is_empty()).collect::<Vec<_>>().join(": ");
    let told = Error::new(classify(error), "ask Redis");
    let told = if words.is_empty() { told } else { told.detail(words) };
    told.caused_by(cause)
}

/// Why a command got no answer. The driver names no cause, or a number of the operating system.
fn why_unanswered(error: &DriverError) -> Option<&'static str> {
    match error.kind() {
        DriverKind::Timeout => Some("the server gave no answer in time"),
        DriverKind::IO | DriverKind::Canceled => Some("the connection broke before the answer came"),
        DriverKind::Unknown if NEVER_SENT.contains(&error.details()) => {
            Some("there is no connection; it is being tried again")
        }
        _ => None,
    }
}

/// The error of a first connection.
pub(crate) fn unreachable(shown: &str, error: &DriverError, secrets: &Secrets) -> Error {
    let (kind, advice) = why_not_connected(error);
    Error::new(kind, "connect").detail(format!("{shown}: {advice}")).caused_by(secrets::keep_out(secrets, error))
}

/// The error of a command for which there is no connection any more, if the last try to make one was refused for good:
/// the password was changed, say, or the certificate.
pub(crate) fn shut_out(shown: &str, error: &DriverError, secrets: &Secrets) -> Option<Error> {
    let (ErrorKind::Backend, advice) = why_not_connected(error) else { return None };
    let told = format!(
        "the connection to {shown} was lost and no other is to be had: {advice}; it is tried again, so put that right on \
         the server, or connect anew with what is right now"
    );
    Some(Error::new(ErrorKind::Backend, "ask Redis").detail(told).caused_by(secrets::keep_out(secrets, error)))
}

/// The error of a command for which there is no connection at the moment.
pub(crate) fn no_connection(shown: &str) -> Error {
    let detail = format!("no connection to {shown}; it is being tried again");
    Error::new(ErrorKind::Unavailable, "ask Redis").detail(detail)
}

/// What a failed try to connect means, and what to do: nothing was asked yet, so nothing can have been carried out.
fn why_not_connected(error: &DriverError) -> (ErrorKind, &'static str) {
    let no_tls = no_agreement_on_tls(error);
    let kind = match classify(error) {
        _ if no_tls.is_some() => ErrorKind::Backend,
        ErrorKind::Indeterminate => ErrorKind::Unavailable,
        kind => kind,
    };
    let advice = refusal(error).and_then(Refusal::advice).or(no_tls).unwrap_or_else(|| match error.kind() {
        DriverKind::IO if error.details().contains("ConnectionRefused") => {
            "nothing listens there; is the server running?"
        }
        DriverKind::IO if error.details().contains("lookup") => "the host name cannot be resolved",
        DriverKind::IO => "the connection broke; is it a Redis server, and does it want TLS?",
        DriverKind::Timeout => "no answer in time; check the address, the firewall and whether the server hangs",
        DriverKind::Sentinel => "no Sentinel named a primary that answers; check addresses, service name and passwords",
        DriverKind::Cluster => "no node of the Cluster answers",
        DriverKind::Auth => "check user and password",
        DriverKind::Protocol => "what answers there is no Redis; is it this port?",
        _ => "it could not be set up",
    });
    (kind, advice)
}

/// Why a try to connect failed, if it was over TLS. Elsewhere the same words may be about a command that was carried out.
fn no_agreement_on_tls(error: &DriverError) -> Option<&'static str> {
    const NOT_TRUSTED: &str =
        "no agreement on TLS; check the certificate, its name and the trusted roots, or name others: ?cacert=FILE";
    let says = |word| error.details().contains(word);
    match error.kind() {
        #[cfg(feature = "tls-rustls")]
        DriverKind::Tls => Some(NOT_TRUSTED),
        DriverKind::IO if is_about_a_certificate(error) => Some(NOT_TRUSTED),
        DriverKind::IO if says("AlertReceived(") => {
            Some("the server ended TLS; if it wants a certificate of ours that it trusts: ?cert=FILE&key=FILE")
        }
        DriverKind::IO if says("InvalidMessage(") => {
            Some("what listens there does not answer in TLS; is it this port?")
        }
        DriverKind::IO if says("PeerIncompatible(") => {
            Some("the server speaks no TLS that is safe: it takes 1.2 or 1.3")
        }
        _ => None,
    }
}

/// With rustls the driver reports a certificate that is not trusted as a failure of the network.
fn is_about_a_certificate(error: &DriverError) -> bool {
    error.details().contains("InvalidCertificate")
}

/// What fred says of a command that it never wrote to a socket.
const NEVER_SENT: [&str; 3] =
    ["Client is not initialized.", "Failed to route command.", "Failed to send command to router."];

/// An error reply of the server, known by its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal<'e> {
    word: &'e str,
    text: &'e str,
}

impl<'e> Refusal<'e> {
    pub(crate) fn read(text: &'e str) -> Option<Self> {
        let word = text.split_whitespace().next()?;
        let is_code = word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase());
        is_code.then_some(Self { word, text })
    }

    fn kind(self) -> ErrorKind {
        match self.word {
            "LOADING" | "READONLY" | "CLUSTERDOWN" | "MASTERDOWN" | "TRYAGAIN" | "BUSY" | "MISCONF" | "OOM"
            | "NOREPLICAS" => ErrorKind::Unavailable,
            "ERR" if self.text.starts_with("ERR max number of clients") => ErrorKind::Unavailable,
            _ => ErrorKind::Backend,
        }
    }

    fn advice(self) -> Option<&'static str> {
        Some(match self.word {
            "NOAUTH" => "the server wants a password: redis://:PASSWORD@HOST or redis://USER:PASSWORD@HOST",
            "WRONGPASS" => "wrong user or password",
            "NOPERM" => "this user's ACL is too narrow; see \"Server requirements\" of the backend",
            "MOVED" | "ASK" | "CROSSSLOT" => "the server is a node of a Cluster: use redis-cluster://",
            "READONLY" => "the server is a read-only replica",
            "OOM" => "the server is out of memory",
            "DENIED" => "the server is in protected mode: it wants a password or a local client",
            // What Redis 7.0 says to a command in a script.
            "ERR" if self.text.contains("The user executing the script can't") => {
                return Self { word: "NOPERM", ..self }.advice();
            }
            "ERR" if self.text.contains("cluster support disabled") => {
                "the server is not in Cluster mode: use redis://"
            }
            _ => return None,
        })
    }

    /// Whether another server may be the right one by now.
    pub(crate) fn is_of_a_wrong_server(self) -> bool {
        matches!(self.word, "READONLY" | "MASTERDOWN")
    }

    /// Whether a server may say so that is cut off from the others, or whose place another has taken.
    fn is_of_another_server(self) -> bool {
        matches!(self.word, "READONLY" | "MASTERDOWN" | "NOREPLICAS" | "LOADING" | "CLUSTERDOWN")
    }

    /// Whether fred drops the connection over it and tells the same to every command in flight.
    pub(crate) fn is_told_to_all(self) -> bool {
        matches!(self.word, "LOADING" | "READONLY" | "CLUSTERDOWN" | "MASTERDOWN")
    }
}

pub(crate) fn refusal(error: &DriverError) -> Option<Refusal<'_>> {
    use DriverKind::{Auth, Cluster, Config, InvalidArgument, InvalidCommand, Sentinel, Unknown};
    let from_the_server =
        matches!(error.kind(), Auth | Cluster | Config | InvalidArgument | InvalidCommand | Sentinel | Unknown);
    Refusal::read(error.details()).filter(|_| from_the_server)
}

/// Whether it is a reason to ask who serves what: the server says that it is not the one, or says nothing.
pub(crate) fn is_of_another_server(error: &DriverError) -> bool {
    match refusal(error) {
        Some(refusal) => refusal.is_of_another_server(),
        None => {
            matches!(error.kind(), DriverKind::IO | DriverKind::Timeout | DriverKind::Canceled | DriverKind::Unknown)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_classified_by_the_first_word_or_by_the_driver_and_told_with_what_an_operator_can_do() {
        use DriverKind::*;
        use ErrorKind::{Backend as Refused, Indeterminate, InvalidOptions, Unavailable};
        for (kind, text, expected, told) in [
            (Auth, "NOAUTH Authentication required.", Refused, "wants a password"),
            (Auth, "WRONGPASS invalid username-password pair or user is disabled.", Refused, "wrong user or password"),
            (Sentinel, "WRONGPASS invalid username-password pair or user is disabled.", Refused, ""),
            (Unknown, "NOPERM User app has no permissions to run the 'wait' command", Refused, "ACL is too narrow"),
            (Unknown, "NOPERM User app has no", Refused, "of the backend: NOPERM User app has no"),
            (Unknown, "ERR The user executing the script can't run this command", Refused, "ACL is too narrow"),
            (InvalidArgument, "WRONGTYPE Operation against a key holding the wrong kind of value", Refused, ""),
            (Unknown, "CROSSSLOT Keys in request don't hash to the same slot", Refused, "use redis-cluster://"),
            (Cluster, "MOVED 3999 127.0.0.1:6381", Refused, "use redis-cluster://"),
            (Unknown, "MOVED 3999 127.0.0.1:6381", Refused, "use redis-cluster://"),
            (Unknown, "ASK 3999 127.0.0.1:6381", Refused, "use redis-cluster://"),
            (Config, "ERR This instance has cluster support disabled", Refused, "use redis://"),
            (Unknown, "ERR unknown command 'EVALSHA'", Refused, ""),
            (Unknown, "DENIED Redis is running in protected mode", Refused, "wants a password or a local client"),
            (Unknown, "WHATEVER comes next", Refused, ""),
            (Unknown, "LOADING Redis is loading the dataset in memory", Unavailable, "store unavailable: LOADING"),
            (Unknown, "READONLY You can't write against a read only replica.", Unavailable, "a read-only replica"),
            (Cluster, "CLUSTERDOWN The cluster is down", Unavailable, "store unavailable: CLUSTERDOWN The cluster"),
            (Unknown, "MASTERDOWN Link with MASTER is down", Unavailable, ""),
            (Unknown, "TRYAGAIN Multiple keys request during rehashing of slot", Unavailable, ""),
            (Unknown, "BUSY Redis is busy running a script.", Unavailable, ""),
            (Unknown, "MISCONF Redis is configured to save", Unavailable, "store unavailable: MISCONF Redis"),
            (Unknown, "OOM command not allowed when used memory > 'maxmemory'.", Unavailable, "out of memory"),
            (Unknown, "NOREPLICAS Not enough good", Unavailable, "store unavailable: NOREPLICAS Not enough good"),
            (Unknown, "ERR max number of clients reached", Unavailable, ""),
            (Backpressure, "Max in-flight commands reached.", Unavailable, ""),
            (Routing, "Too many redirections.", Unavailable, ""),
            (Cluster, "Failed connecting to any cluster node.", Unavailable, ""),
            (Sentinel, "Failed to connect to all sentinel nodes.", Unavailable, ""),
            (Unknown, "Client is not initialized.", Unavailable, ""),
            (Unknown, "Failed to route command.", Unavailable, "there is no connection; it is being tried again"),
            (IO, "Connection closed.", Indeterminate, "broke before the answer came: Connection closed."),
            (IO, "Custom { kind: InvalidData, error: InvalidCertificate(UnknownIssuer) }", Refused, ""),
            (IO, "ERR told by a broken pipe", Indeterminate, ""),
            (Timeout, "Request timed out.", Indeterminate, "outcome unknown: the server gave no answer in time"),
            (Canceled, "Canceled.", Indeterminate, ""),
            (Protocol, "Unexpected frame.", Indeterminate, ""),
            (Parse, "Invalid integer string.", Indeterminate, ""),
            (NotFound, "nil", Indeterminate, ""),
            (Unknown, "channel closed", Indeterminate, ""),
            (Unknown, "Too many failed write attempts.", Indeterminate, ""),
            (Unknown, "", Indeterminate, "outcome unknown"),
            (InvalidCommand, "Invalid command", Refused, ""),
            (Url, "EmptyHost", InvalidOptions, ""),
            #[cfg(feature = "tls-rustls")]
            (Tls, "invalid peer name", Refused, ""),
        ] {
            let error = failed(&DriverError::new(kind, text), &Secrets::default());
            assert_eq!(error.kind(), expected, "{error}");
            assert!(error.to_string().contains(told), "{error}");
        }
    }

    #[test]
    fn a_try_to_connect_that_failed_tells_what_to_look_at_and_lasts_if_it_was_refused() {
        use DriverKind::*;
        use ErrorKind::{Backend as Refused, Unavailable};
        for (kind, text, expected, advice) in [
            (IO, "Os { code: 111, kind: ConnectionRefused }", Unavailable, "nothing listens there"),
            (IO, "failed to lookup address information", Unavailable, "the host name cannot be resolved"),
            (IO, "Connection closed.", Unavailable, "is it a Redis server"),
            (Timeout, "Request timed out.", Unavailable, "no answer in time"),
            (Sentinel, "Failed to connect to all sentinel nodes.", Unavailable, "no Sentinel named a primary"),
            (Cluster, "Failed connecting to any cluster node.", Unavailable, "no node of the Cluster answers"),
            (Auth, "not let in", Refused, "check user and password"),
            (Auth, "WRONGPASS invalid username-password pair", Refused, "wrong user or password"),
            (Unknown, "channel closed", Unavailable, "it could not be set up"),
            (IO, "InvalidCertificate(UnknownIssuer)", Refused, "the trusted roots"),
            (IO, "AlertReceived(CertificateRequired)", Refused, "if it wants a certificate of ours"),
            (IO, "InvalidMessage(InvalidContentType)", Refused, "does not answer in TLS"),
            (IO, "PeerIncompatible(SelectedUnofferedCipherSuite)", Refused, "no TLS that is safe"),
            #[cfg(feature = "tls-rustls")]
            (Tls, "invalid peer name", Refused, "the trusted roots"),
        ] {
            let error = DriverError::new(kind, text);
            let first = unreachable("redis://h:1", &error, &Secrets::default());
            assert_eq!(first.kind(), expected, "{error}");
            assert!(first.to_string().contains(advice), "{first}");
            let later = shut_out("redis://h:1", &error, &Secrets::default());
            assert_eq!(later.as_ref().map(Error::kind), (expected == Refused).then_some(Refused), "{error}");
            assert!(later.is_none_or(|later| later.to_string().contains(advice)), "{error}");
        }
        assert_eq!(no_connection("redis://h:1").kind(), Unavailable);
    }

    #[test]
    fn another_server_is_looked_for_when_one_says_so_or_says_nothing() {
        // Whether it is the wrong server, whether another may be right, and whether all commands in flight are told.
        for (word, expected) in [
            ("READONLY", (true, true, true)),
            ("MASTERDOWN", (true, true, true)),
            ("LOADING", (false, true, true)),
            ("CLUSTERDOWN", (false, true, true)),
            ("NOREPLICAS", (false, true, false)),
            ("BUSY", (false, false, false)),
            ("NOAUTH", (false, false, false)),
        ] {
            let refusal = Refusal::read(word).expect("a refusal");
            let told = DriverError::new(DriverKind::Unknown, word);
            let (wrong, all) = (refusal.is_of_a_wrong_server(), refusal.is_told_to_all());
            assert_eq!((wrong, is_of_another_server(&told), all), expected, "{word}");
        }
        for kind in [DriverKind::IO, DriverKind::Timeout, DriverKind::Canceled, DriverKind::Unknown] {
            assert!(is_of_another_server(&DriverError::new(kind, "silence")));
        }
        assert!(!is_of_another_server(&DriverError::new(DriverKind::Parse, "Invalid integer string.")));
        assert_eq!((Refusal::read("A word"), Refusal::read("Word"), Refusal::read(" ")), (None, None, None));
    }
}
