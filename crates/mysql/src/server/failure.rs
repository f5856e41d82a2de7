use leasehold_core::{Error, ErrorKind, Secrets};
use mysql_async::{DriverError, Error as Failure, IoError};

/// How far a statement had come when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There was no connection yet, so nothing was sent.
    Connecting,
    /// The statement may have reached the server.
    Sent,
}

/// What a failure of the driver means to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailureClass {
    /// The kind of the error to report.
    pub(crate) kind: ErrorKind,
    /// Whether the server undid the statement because of another session, so that it may be sent again at once.
    pub(crate) undone: bool,
    /// Whether the server refused the statement because it takes no writes, or none any more.
    pub(crate) takes_no_writes: bool,
    /// What an operator can do about the failure, if anything.
    pub(crate) advice: Option<&'static str>,
}

/// Classifies a failure of the driver. Only this file knows the error codes of `MySQL` and `MariaDB`.
pub(crate) fn classify(failure: &Failure, progress: Progress) -> FailureClass {
    let unknown = if progress == Progress::Sent { ErrorKind::Indeterminate } else { ErrorKind::Unavailable };
    match failure {
        Failure::Server(refusal) => of_code(refusal.code, unknown),
        // TLS failed, which waiting does not change: a certificate that is not trusted, or none.
        Failure::Io(IoError::Io(why))
            if progress == Progress::Connecting && why.kind() == std::io::ErrorKind::InvalidData =>
        {
            simple(ErrorKind::Backend)
        }
        Failure::Io(IoError::Io(why)) if progress == Progress::Connecting => {
            FailureClass { advice: not_there(why), ..simple(unknown) }
        }
        // Other: the driver panicked at an answer, and nobody knows how far the server had come.
        Failure::Other(_)
        | Failure::Io(IoError::Io(_))
        | Failure::Driver(
            DriverError::ConnectionClosed | DriverError::PacketOutOfOrder | DriverError::UnexpectedPacket { .. },
        ) => simple(unknown),
        Failure::Driver(DriverError::PoolDisconnected) => simple(ErrorKind::Unavailable),
        Failure::Driver(DriverError::NoClientSslFlagFromServer) => {
            advise(ErrorKind::Backend, "the server does not offer TLS")
        }
        // The feature for TLS adds one more variant of Io, of the same kind.
        _ => simple(ErrorKind::Backend),
    }
}

/// Why there is no connection, where the system says so.
fn not_there(why: &std::io::Error) -> Option<&'static str> {
    match why.kind() {
        std::io::ErrorKind::ConnectionRefused => Some("nothing listens there; is the server running?"),
        std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset => {
            Some("the connection broke; is it a MySQL or MariaDB server, and has it a connection left?")
        }
        _ if why.to_string().contains("lookup") => Some("the host name cannot be resolved"),
        _ => None,
    }
}

fn of_code(code: u16, unknown: ErrorKind) -> FailureClass {
    use ErrorKind::{Backend, Unavailable};
    match code {
        // Deadlock; lock wait timeout; NOWAIT on MySQL; snapshot conflict on MariaDB; a conflict between the members of a
        // group: each undid the statement. And a table that changed since the statement was prepared: it was not begun.
        1213 | 1205 | 3572 | 1020 | 3101 | 1615 => FailureClass { undone: true, ..simple(Unavailable) },
        1040 | 1203 | 1226 => advise(Unavailable, "the server has no connection left"),
        // The limit counts the statements of all clients.
        1461 => advise(Unavailable, "the server prepares no more statements: see its max_prepared_stmt_count"),
        1021 | 1114 => advise(Unavailable, "the server's disk, or what it may use of it, is full"),
        1037 | 1041 | 1135 => advise(Unavailable, "the server has no memory or thread left"),
        1290 | 1836 | 1792 => {
            FailureClass { takes_no_writes: true, ..advise(Unavailable, "the server is read-only: is it a replica?") }
        }
        // A node of Galera that is cut off; a member that its group does not let commit; a server in offline mode.
        1047 | 3100 | 3032 => FailureClass { takes_no_writes: true, ..simple(Unavailable) },
        // Too many errors from this host; the network between.
        1129 | 1158..=1161 => simple(Unavailable),
        // The session or the statement was ended, in the worst case between the commit and the answer.
        1053 | 1152 | 1180 | 1317 | 1927 | 1969 | 2006 | 2013 | 3024 | 4031 => simple(unknown),
        1044 | 1045 | 1698 => advise(Backend, "check user, password, and the user's rights to the database"),
        3159 => advise(Backend, "the server wants TLS: require_ssl=true"),
        1049 => advise(Backend, "create the database first"),
        1142 | 1143 => advise(Backend, LACKS_RIGHT),
        1146 | 1054 => advise(Backend, MIGRATE),
        1665 => advise(Backend, "binlog_format=STATEMENT cannot log at this isolation level: use ROW or MIXED"),
        _ => simple(Backend),
    }
}

/// The advice for a user who may not do something with a table.
pub(crate) const LACKS_RIGHT: &str = "the user lacks a right to the table: see \"Server requirements\"";

/// The advice for tables that are missing, or not as they should be.
pub(crate) const MIGRATE: &str =
    "the table is missing or not as it should be: run `leasehold migrate` or call `migrate()`";

fn simple(kind: ErrorKind) -> FailureClass {
    FailureClass { kind, undone: false, takes_no_writes: false, advice: None }
}

fn advise(kind: ErrorKind, advice: &'static str) -> FailureClass {
    FailureClass { advice: Some(advice), ..simple(kind) }
}

impl FailureClass {
    /// The error to report for `failure`. `place` begins its text. The server's words are quoted unless one of the
    /// `secrets` is in them, and not where the secrets are not known.
    pub(crate) fn error(
        self,
        operation: &'static str,
        place: &str,
        failure: &Failure,
        secrets: Option<&Secrets>,
    ) -> Error {
        let error = Error::new(self.kind, operation);
        let said = said(failure);
        let is_harmless = secrets.is_some_and(|secrets| secrets.hide(&said) == said);
        let said = if is_harmless { said } else { unquoted(failure) };
        match self.advice {
            Some(advice) => error.detail(format!("{place}{advice}")).caused_by(Secrets::default().quote(&said)),
            None => error.detail(format!("{place}{said}")),
        }
    }
}

/// The failure without the server's words.
fn unquoted(failure: &Failure) -> String {
    match failure {
        Failure::Server(refusal) => format!("server error {}, in words that may quote a password", refusal.code),
        Failure::Driver(DriverError::ConnectionClosed | DriverError::PoolDisconnected) => failure.to_string(),
        Failure::Driver(_) => "the driver does not take the server's answer".to_owned(),
        _ => said(failure),
    }
}

/// The failure, without what the driver says twice before it: "Input/output error: Input/output error: ".
fn said(failure: &Failure) -> String {
    match failure {
        Failure::Io(IoError::Io(why)) => why.to_string(),
        #[cfg(feature = "tls-rustls")]
        Failure::Io(why) => why.to_string(),
        _ => failure.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use mysql_async::ServerError;

    use super::*;

    fn refused(code: u16, progress: Progress) -> FailureClass {
        let refusal = ServerError { code, message: "no".into(), state: "HY000".into() };
        classify(&Failure::Server(refusal), progress)
    }

    #[test]
    fn each_code_has_its_class() {
        use ErrorKind::{Backend, Indeterminate, Unavailable};
        let table: [(&[u16], ErrorKind, bool, &str); 15] = [
            (&[1213, 1205, 3572, 1020, 3101, 1615], Unavailable, true, ""),
            (&[1040, 1203, 1226], Unavailable, false, "connection"),
            (&[1461], Unavailable, false, "max_prepared_stmt_count"),
            (&[1135, 1037, 1041], Unavailable, false, "memory"),
            (&[1021, 1114], Unavailable, false, "disk"),
            (&[1290, 1836, 1792], Unavailable, false, "read-only"),
            (&[1047, 3100, 3032, 1129, 1160], Unavailable, false, ""),
            (&[1053, 1927, 2006, 2013], Indeterminate, false, ""),
            (&[1044, 1045], Backend, false, "rights"),
            (&[1049], Backend, false, "create the database"),
            (&[3159], Backend, false, "require_ssl"),
            (&[1054, 1146], Backend, false, "migrate"),
            (&[1142], Backend, false, "right"),
            (&[1665], Backend, false, "ROW"),
            (&[1064, 1406], Backend, false, ""),
        ];
        for (codes, kind, undone, advice) in table {
            for &code in codes {
                let class = refused(code, Progress::Sent);
                assert_eq!((class.kind, class.undone), (kind, undone), "{code}");
                assert!(class.advice.unwrap_or_default().contains(advice), "{code}: {class:?}");
                assert_eq!(class.advice.is_some(), !advice.is_empty(), "{code}");
                let takes_no_writes = [1290, 1836, 1792, 1047, 3100, 3032].contains(&code);
                assert_eq!(class.takes_no_writes, takes_no_writes, "{code}");
            }
        }
    }

    #[test]
    fn what_was_not_sent_was_not_applied() {
        let cut = || Failure::Io(IoError::Io(std::io::ErrorKind::ConnectionReset.into()));
        assert_eq!(classify(&cut(), Progress::Sent).kind, ErrorKind::Indeterminate);
        assert_eq!(classify(&cut(), Progress::Connecting).kind, ErrorKind::Unavailable);
        assert_eq!(refused(1053, Progress::Connecting).kind, ErrorKind::Unavailable);
        let closed = Failure::Driver(DriverError::ConnectionClosed);
        assert_eq!(classify(&closed, Progress::Sent).kind, ErrorKind::Indeterminate);
        assert_eq!(classify(&Failure::Driver(DriverError::MixedParams), Progress::Sent).kind, ErrorKind::Backend);
        let disconnected = Failure::Driver(DriverError::PoolDisconnected);
        assert_eq!(classify(&disconnected, Progress::Sent).kind, ErrorKind::Unavailable);
        assert_eq!(classify(&Failure::Other("panicked".into()), Progress::Sent).kind, ErrorKind::Indeterminate);
    }

    #[test]
    fn why_there_is_no_connection_is_said_and_of_a_statement_it_is_not() {
        use std::io::{Error as Broken, ErrorKind as Kind};
        let reasons: [(fn() -> Broken, _); 5] = [
            (|| Kind::ConnectionRefused.into(), "nothing listens there"),
            (|| Kind::UnexpectedEof.into(), "the connection broke; is it"),
            (|| Kind::ConnectionReset.into(), "the connection broke; is it"),
            (|| Broken::other("failed to lookup address information"), "the host name cannot be resolved"),
            (|| Kind::TimedOut.into(), ""),
        ];
        for (why, advice) in reasons {
            let advised = |progress| classify(&Failure::Io(IoError::Io(why())), progress).advice;
            let told = advised(Progress::Connecting);
            assert!(told.unwrap_or_default().starts_with(advice) && told.is_some() != advice.is_empty(), "{told:?}");
            assert_eq!(advised(Progress::Sent), None, "{advice}");
        }
    }

    #[test]
    fn tls_that_fails_before_anything_was_sent_fails_for_good() {
        let odd = || Failure::Io(IoError::Io(std::io::ErrorKind::InvalidData.into()));
        assert_eq!(classify(&odd(), Progress::Connecting).kind, ErrorKind::Backend);
        assert_eq!(classify(&odd(), Progress::Sent).kind, ErrorKind::Indeterminate);
        let none = classify(&Failure::Driver(DriverError::NoClientSslFlagFromServer), Progress::Connecting);
        assert_eq!((none.kind, none.advice), (ErrorKind::Backend, Some("the server does not offer TLS")));
    }

    #[test]
    fn the_words_of_a_server_are_told_only_where_it_is_known_what_they_must_not_show() {
        let told = |failure: &Failure, secrets: Option<&Secrets>| {
            let error = classify(failure, Progress::Sent).error("test", "here: ", failure, secrets);
            let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            format!("{error} {source}")
        };
        let says = |code| {
            let (message, state) = ("the canary sings".into(), "HY000".into());
            Failure::Server(ServerError { code, message, state })
        };
        for code in [1064, 1049] {
            let known = told(&says(code), Some(&Secrets::of(["another"])));
            assert!(known.contains("here: ") && known.contains("the canary sings"), "{known}");
            let hidden = told(&says(code), Some(&Secrets::of(["canary"])));
            assert!(hidden.contains("here: ") && hidden.contains(&format!("server error {code}")), "{hidden}");
            assert!(!hidden.contains("canary") && !hidden.contains("sings"), "{hidden}");
            let unknown = told(&says(code), None);
            assert!(unknown.contains(&format!("server error {code}")) && !unknown.contains("sings"), "{unknown}");
        }
        let closed = Failure::Driver(DriverError::ConnectionClosed);
        assert!(told(&closed, None).contains(&closed.to_string()));
        assert!(told(&Failure::Driver(DriverError::MixedParams), None).contains("does not take the server's answer"));
    }
}
