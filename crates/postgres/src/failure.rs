use std::error::Error as StdError;

use leasehold_core::{Error, ErrorKind, Secrets};
use tokio_postgres::Error as Failure;

/// What may be done about a failed statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Report the error.
    None,
    /// Send the statement again: the server undid it because of another session.
    Resend,
    /// Send the statement on a new connection: this server takes no writes, and the address may lead to another by now.
    Reconnect,
}

/// Classifies a failure of the driver. `sent`: the statement may have reached the server. Only this file knows the server's codes.
pub(crate) fn classify(operation: &'static str, failure: &Failure, sent: bool, secrets: &Secrets) -> (Error, Remedy) {
    let unknown = if sent { ErrorKind::Indeterminate } else { ErrorKind::Unavailable };
    let (kind, remedy, advice) = match failure.code() {
        Some(code) if code.code() == "08P01" && !sent && is_refused_by_a_pooler(failure) => {
            (ErrorKind::Backend, Remedy::None, REFUSED)
        }
        Some(code) => of_code(code.code(), unknown),
        None if !sent && is_permanent(failure) => (ErrorKind::Backend, Remedy::None, ""),
        None if !sent => (unknown, Remedy::None, not_there(failure)),
        None => (unknown, Remedy::None, ""),
    };
    let (error, said) = (Error::new(kind, operation), text(failure));
    let error = if advice.is_empty() {
        error.detail(secrets.hide(&said))
    } else {
        error.detail(advice).caused_by(secrets.quote(&said))
    };
    (error, remedy)
}

const BROKE: &str = "the connection broke; is it a PostgreSQL server or a pooler?";

/// Why there is no connection, where the system says so.
fn not_there(failure: &Failure) -> &'static str {
    let why = failure.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    match why.map(std::io::Error::kind) {
        Some(std::io::ErrorKind::ConnectionRefused) => "nothing listens there; is the server running?",
        Some(std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset) => BROKE,
        None if failure.is_closed() => BROKE,
        _ if why.is_some_and(|why| why.to_string().contains("lookup")) => "the host name cannot be resolved",
        _ => "",
    }
}

fn of_code(code: &str, unknown: ErrorKind) -> (ErrorKind, Remedy, &'static str) {
    use ErrorKind::{Backend, Unavailable};
    match code {
        // A conflict of snapshots above READ COMMITTED; a deadlock.
        "40001" | "40P01" => (Unavailable, Remedy::Resend, ""),
        "55P03" => (Unavailable, Remedy::None, LOCKED),
        "57014" => (Unavailable, Remedy::None, "somebody, or statement_timeout, ended the statement"),
        "25006" => (Unavailable, Remedy::Reconnect, "the server is read-only: is it a standby?"),
        "53300" => (
            Unavailable,
            Remedy::None,
            "the server has no connection left: see max_connections, or use a smaller pool_max",
        ),
        "53100" => (Unavailable, Remedy::None, "the server's disk is full"),
        "57P03" => (Unavailable, Remedy::None, "the server is starting or shutting down"),
        "28000" | "28P01" | "42501" => (Backend, Remedy::None, REFUSED),
        "3D000" => (Backend, Remedy::None, "create the database first"),
        // The session was ended, in the worst case between the commit and the answer.
        "57P01" | "57P02" | "57P05" => (unknown, Remedy::None, ""),
        "3F000" | "42883" | "42P01" => (Backend, Remedy::None, MIGRATE),
        _ if code.starts_with("08") => (unknown, Remedy::None, ""),
        _ if code.starts_with("53") => (Unavailable, Remedy::None, ""),
        _ => (Backend, Remedy::None, ""),
    }
}

/// The advice for a row that was waited for in vain.
pub(crate) const LOCKED: &str = "another session has locked the row of the key, and keeps it";

/// The advice for a login, or a statement, that the server refused.
const REFUSED: &str = "check user, password, database, and the rights in \"Server requirements\"";

/// The advice for a schema that is missing, or not as it should be.
const MIGRATE: &str = "the schema is missing or not as it should be: run `leasehold migrate` or call `migrate()`";

/// The operation that errors about a URL name.
pub(crate) const PARSE: &str = "read the address";

/// The error for a URL that cannot be used.
pub(crate) fn refuse(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOptions, PARSE).detail(why)
}

/// What the driver says, with the words of the server.
pub(crate) fn text(failure: &Failure) -> String {
    let mut text = failure.to_string();
    if let Some(source) = failure.source() {
        let source = source.to_string();
        if !text.contains(&source) {
            text = format!("{text}: {source}");
        }
    }
    text
}

/// Whether waiting does not change it: a certificate that is not trusted, no TLS, a password that is missing.
fn is_permanent(failure: &Failure) -> bool {
    let said = text(failure);
    let source = failure.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    let refused = ["authentication error", "invalid configuration", "server does not support TLS"];
    refused.iter().any(|words| said.contains(words))
        || source.is_some_and(|why| why.kind() == std::io::ErrorKind::InvalidData)
}

/// Whether a pooler refused a login for good. `PgBouncer` has one code for this and for failures of the moment.
fn is_refused_by_a_pooler(failure: &Failure) -> bool {
    let said = text(failure);
    ["authentication failed", "no such database", "no such user", "bouncer config error"]
        .iter()
        .any(|words| said.contains(words))
}
