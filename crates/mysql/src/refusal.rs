use leasehold_core::{Error, ErrorKind, Secrets};
use mysql_async::{DriverError, Error as Failure, IoError};

/// How far a statement had come when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// There was no connection yet: nothing was sent.
    Connecting,
    /// The statement may have reached the server.
    Sent,
}

/// What a failure means to whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The kind of the error to report.
    pub kind: ErrorKind,
    /// The server undid it because of another session, so the same statement may be sent again at once.
    pub again: bool,
    /// The server did not do it, because it is not, or not any more, the one that takes writes.
    pub elsewhere: bool,
    /// What a person can do about it, if there is anything.
    pub advice: Option<&'static str>,
}

/// What a failure of the driver means: the one place that knows error codes of `MySQL` and `MariaDB`.
pub fn classify(failure: &Failure, stage: Stage) -> Verdict {
    let unknown = if stage == Stage::Sent { ErrorKind::Indeterminate } else { ErrorKind::Unavailable };
    match failure {
        Failure::Server(refusal) => of_code(refusal.code, unknown),
        // TLS did not come about, which waiting does not change: a certificate that is not trusted, or none.
        Failure::Io(IoError::Io(why))
            if stage == Stage::Connecting && why.kind() == std::io::ErrorKind::InvalidData =>
        {
            plain(ErrorKind::Backend)
        }
        // Other: the driver stumbled over an answer, and nobody knows how far the server had come.
        Failure::Other(_)
        | Failure::Io(IoError::Io(_))
        | Failure::Driver(
            DriverError::ConnectionClosed | DriverError::PacketOutOfOrder | DriverError::UnexpectedPacket { .. },
        ) => plain(unknown),
        Failure::Driver(DriverError::PoolDisconnected) => plain(ErrorKind::Unavailable),
        Failure::Driver(DriverError::NoClientSslFlagFromServer) => {
            advise(ErrorKind::Backend, "the server does not offer TLS")
        }
        // With TLS there is one more class of Io, of the same kind.
        _ => plain(ErrorKind::Backend),
    }
}

fn of_code(code: u16, unknown: ErrorKind) -> Verdict {
    use ErrorKind::{Backend, Unavailable};
    match code {
        // Deadlock; lock wait timeout; NOWAIT on MySQL; snapshot conflict on MariaDB; a conflict between the members of a
        // group. Each undid the statement. A table that changed under a prepared one, which was not begun.
        1213 | 1205 | 3572 | 1020 | 3101 | 1615 => Verdict { again: true, ..plain(Unavailable) },
        1040 | 1203 | 1226 => advise(Unavailable, "the server has no connection left"),
        // Others' statements count too.
        1461 => advise(Unavailable, "the server prepares no more statements: see its max_prepared_stmt_count"),
        1021 | 1114 => advise(Unavailable, "the server's disk, or what it may use of it, is full"),
        1037 | 1041 | 1135 => advise(Unavailable, "the server has no memory or thread left"),
        1290 | 1836 | 1792 => {
            Verdict { elsewhere: true, ..advise(Unavailable, "the server is read-only: is it a replica?") }
        }
        // A node of Galera that is cut off; a member that its group does not let commit; a server in offline mode.
        1047 | 3100 | 3032 => Verdict { elsewhere: true, ..plain(Unavailable) },
        // Too many errors from this host; the network between.
        1129 | 1158..=1161 => plain(Unavailable),
        // The session or statement was ended, in the worst case between the commit and the answer.
        1053 | 1152 | 1180 | 1317 | 1927 | 1969 | 2006 | 2013 | 3024 | 4031 => plain(unknown),
        1044 | 1045 | 1698 => advise(Backend, "check user, password, and the user's rights to the database"),
        3159 => advise(Backend, "the server wants TLS: require_ssl=true"),
        1049 => advise(Backend, "create the database first"),
        1142 | 1143 => advise(Backend, "the user lacks a right to the table: see \"Server requirements\""),
        1146 | 1054 => advise(Backend, MIGRATE),
        1665 => advise(Backend, "binlog_format=STATEMENT cannot log at this isolation level: use ROW or MIXED"),
        _ => plain(Backend),
    }
}

/// What to do when the tables are not as they should be.
pub(crate) const MIGRATE: &str =
    "the table is missing or not as it should be: run `leasehold migrate` or call `migrate()`";

fn plain(kind: ErrorKind) -> Verdict {
    Verdict { kind, again: false, elsewhere: false, advice: None }
}

fn advise(kind: ErrorKind, advice: &'static str) -> Verdict {
    Verdict { advice: Some(advice), ..plain(kind) }
}

impl Verdict {
    /// The error for whoever asked, at this place. The server is not quoted with these secrets, nor, where they are
    /// not known, at all.
    pub(crate) fn error(
        self,
        operation: &'static str,
        place: &str,
        failure: &Failure,
        secrets: Option<&Secrets>,
    ) -> Error {
        let error = Error::new(self.kind, operation);
        let said = if secrets.is_some() { failure.to_string() } else { unquoted(failure) };
        let none = Secrets::default();
        let secrets = secrets.unwrap_or(&none);
        match self.advice {
            Some(advice) => error.detail(format!("{place}{advice}")).caused_by(secrets.quote(&said)),
            None => error.detail(format!("{place}{}", secrets.hide(&said))),
        }
    }
}

/// What happened, without a word of the server's.
fn unquoted(failure: &Failure) -> String {
    match failure {
        Failure::Server(refusal) => format!("server error {}, in words that may quote a password", refusal.code),
        Failure::Driver(DriverError::ConnectionClosed | DriverError::PoolDisconnected) => failure.to_string(),
        Failure::Driver(_) => "the driver does not take the server's answer".to_owned(),
        _ => failure.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use mysql_async::ServerError;

    use super::*;

    fn refused(code: u16, stage: Stage) -> Verdict {
        let refusal = ServerError { code, message: "no".into(), state: "HY000".into() };
        classify(&Failure::Server(refusal), stage)
    }

    #[test]
    fn each_code_has_its_class() {
        use ErrorKind::{Backend, Indeterminate, Unavailable};
        let table = [
            (1213, Unavailable, true, ""),
            (1205, Unavailable, true, ""),
            (3572, Unavailable, true, ""),
            (1020, Unavailable, true, ""),
            (3101, Unavailable, true, ""),
            (1615, Unavailable, true, ""),
            (1040, Unavailable, false, "connection"),
            (1203, Unavailable, false, "connection"),
            (1226, Unavailable, false, "connection"),
            (1461, Unavailable, false, "max_prepared_stmt_count"),
            (1135, Unavailable, false, "memory"),
            (1037, Unavailable, false, "memory"),
            (1041, Unavailable, false, "memory"),
            (1021, Unavailable, false, "disk"),
            (1114, Unavailable, false, "disk"),
            (1290, Unavailable, false, "read-only"),
            (1836, Unavailable, false, "read-only"),
            (1792, Unavailable, false, "read-only"),
            (1047, Unavailable, false, ""),
            (3100, Unavailable, false, ""),
            (3032, Unavailable, false, ""),
            (1053, Indeterminate, false, ""),
            (1927, Indeterminate, false, ""),
            (2006, Indeterminate, false, ""),
            (2013, Indeterminate, false, ""),
            (1044, Backend, false, "rights"),
            (1045, Backend, false, "password"),
            (1049, Backend, false, "create the database"),
            (3159, Backend, false, "require_ssl"),
            (1054, Backend, false, "migrate"),
            (1142, Backend, false, "right"),
            (1146, Backend, false, "migrate"),
            (1665, Backend, false, "ROW"),
            (1064, Backend, false, ""),
            (1406, Backend, false, ""),
        ];
        for (code, kind, again, advice) in table {
            let verdict = refused(code, Stage::Sent);
            assert_eq!((verdict.kind, verdict.again), (kind, again), "{code}");
            assert!(verdict.advice.unwrap_or_default().contains(advice), "{code}: {verdict:?}");
            assert_eq!(verdict.advice.is_some(), !advice.is_empty(), "{code}");
            let elsewhere = [1290, 1836, 1792, 1047, 3100, 3032].contains(&code);
            assert_eq!(verdict.elsewhere, elsewhere, "{code}");
        }
    }

    #[test]
    fn what_was_not_sent_was_not_applied() {
        let cut = || Failure::Io(IoError::Io(std::io::ErrorKind::ConnectionReset.into()));
        assert_eq!(classify(&cut(), Stage::Sent).kind, ErrorKind::Indeterminate);
        assert_eq!(classify(&cut(), Stage::Connecting).kind, ErrorKind::Unavailable);
        assert_eq!(refused(1053, Stage::Connecting).kind, ErrorKind::Unavailable);
        let closed = Failure::Driver(DriverError::ConnectionClosed);
        assert_eq!(classify(&closed, Stage::Sent).kind, ErrorKind::Indeterminate);
        assert_eq!(classify(&Failure::Driver(DriverError::MixedParams), Stage::Sent).kind, ErrorKind::Backend);
    }
}
