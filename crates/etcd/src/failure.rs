use std::error::Error as StdError;
use std::io;

use leasehold_core::{Error, ErrorKind, Secrets};
use tonic::{Code, ConnectError, Status};

/// What a failed request is told as, and whether another node may serve it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// Whether the node is at fault: the next request goes to another one, on a new connection.
    pub(crate) elsewhere: bool,
    /// Whether the node said so itself.
    pub(crate) answered: bool,
}

/// Classifies a failure. `writes`: whether the request would have changed who holds a key. Only this file knows what etcd says.
pub(crate) fn classify(operation: &'static str, status: &Status, writes: bool, secrets: &Secrets) -> Failure {
    let unknown = if writes { ErrorKind::Indeterminate } else { ErrorKind::Unavailable };
    let answered = !was_not_sent(status);
    let (kind, elsewhere, advice) =
        if answered { of(status.code(), status.message(), unknown) } else { (ErrorKind::Unavailable, true, "") };
    let error = Error::new(kind, operation);
    let said = said(status);
    let error = if advice.is_empty() {
        error.detail(secrets.hide(&said))
    } else {
        error.detail(advice).caused_by(secrets.quote(&said))
    };
    Failure { error, elsewhere, answered }
}

fn of(code: Code, message: &str, unknown: ErrorKind) -> (ErrorKind, bool, &'static str) {
    use ErrorKind::{Backend, Unavailable};
    let says = |words: &str| message.contains(words);
    match code {
        // Asked of a node before it proposes anything.
        Code::Unavailable if says("etcdserver: no leader") => {
            (Unavailable, true, "no majority of the etcd servers is there to decide")
        }
        Code::Unavailable if says("learner") => (Unavailable, true, ""),
        // The token of a login has run out, or the users were changed meanwhile: a new login is needed.
        Code::Unauthenticated => (Unavailable, true, ""),
        Code::InvalidArgument if says("revision of auth store is old") => (Unavailable, true, ""),
        Code::ResourceExhausted if says("etcdserver: mvcc: database space exceeded") => {
            (Unavailable, false, "etcd's database is full: compact and defragment it, then `etcdctl alarm disarm`")
        }
        Code::ResourceExhausted if says("etcdserver: too many requests") => (Unavailable, false, ""),
        // The lease of a claim ended before the claim got through.
        Code::NotFound if says("requested lease not found") => (Unavailable, false, ""),
        Code::PermissionDenied if says("etcdserver:") => {
            (Backend, false, "the user lacks the rights in \"Server requirements\"")
        }
        Code::InvalidArgument if says("authentication failed") => (Backend, false, "check user and password"),
        Code::InvalidArgument if says("user name is empty") => {
            (Backend, false, "the server wants a user and a password")
        }
        Code::FailedPrecondition if says("authentication is not enabled") => {
            (Backend, false, "the URL names a user, and the server has none: authentication is not enabled")
        }
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange | Code::Unimplemented
            if says("etcdserver:") =>
        {
            (Backend, false, "")
        }
        Code::Unimplemented => (Backend, false, "who answers here is not etcd with version 3 of its API"),
        // Among them that etcd gave up waiting for its majority, and that the leader changed meanwhile.
        _ => (unknown, true, ""),
    }
}

/// Whether etcd refused a request because it does not keep that revision any more.
pub(crate) fn is_compacted(error: &Error) -> bool {
    error.kind() == ErrorKind::Backend && error.to_string().contains("required revision has been compacted")
}

/// Whether etcd refused a transaction because a lease that it gives to an entry is there no more.
pub(crate) fn is_lease_gone(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable && error.to_string().contains("requested lease not found")
}

/// Whether there was no connection on which the request could have been sent.
fn was_not_sent(status: &Status) -> bool {
    causes(status).any(<dyn StdError>::is::<ConnectError>)
}

/// What the driver says, with the innermost cause.
fn said(status: &Status) -> String {
    match status.source() {
        Some(source) => format!("{}: {}", status.message(), innermost(source)),
        None => status.message().to_owned(),
    }
}

/// Whether a connection failed because of TLS: the certificate is not trusted, or the server does not speak it.
pub(crate) fn is_about_tls(error: &(dyn StdError + 'static)) -> bool {
    let mut of_io = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    of_io.any(|why| why.kind() == io::ErrorKind::InvalidData)
}

/// The text of the innermost cause of an error.
pub(crate) fn innermost(error: &(dyn StdError + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

/// An error, and what caused it, down to the innermost.
fn causes<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The error for what nothing of this project writes.
pub(crate) fn odd(operation: &'static str, what: &[u8]) -> Error {
    let what = String::from_utf8_lossy(what);
    Error::new(ErrorKind::Backend, operation).detail(format!("etcd's key {what:?} is not what Leasehold writes there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_its_class() {
        use ErrorKind::{Backend, Indeterminate, Unavailable};
        for (code, message, kind, elsewhere, advice) in [
            (Code::Unavailable, "etcdserver: no leader", Unavailable, true, "no majority"),
            (Code::Unavailable, "etcdserver: rpc not supported for learner", Unavailable, true, ""),
            (Code::Unavailable, "etcdserver: request timed out", Indeterminate, true, ""),
            (Code::Unavailable, "etcdserver: leader changed", Indeterminate, true, ""),
            (Code::Unavailable, "etcdserver: server stopped", Indeterminate, true, ""),
            (Code::Unknown, "transport error", Indeterminate, true, ""),
            (Code::Cancelled, "operation was canceled", Indeterminate, true, ""),
            (Code::Unauthenticated, "etcdserver: invalid auth token", Unavailable, true, ""),
            (Code::InvalidArgument, "etcdserver: revision of auth store is old", Unavailable, true, ""),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", Unavailable, false, "full"),
            (Code::ResourceExhausted, "etcdserver: too many requests", Unavailable, false, ""),
            (Code::NotFound, "etcdserver: requested lease not found", Unavailable, false, ""),
            (Code::PermissionDenied, "etcdserver: permission denied", Backend, false, "rights"),
            (Code::InvalidArgument, "etcdserver: authentication failed, invalid user", Backend, false, "check user"),
            (Code::InvalidArgument, "etcdserver: user name is empty", Backend, false, "wants a user"),
            (Code::FailedPrecondition, "etcdserver: authentication is not enabled", Backend, false, "has none"),
            (Code::InvalidArgument, "etcdserver: request is too large", Backend, false, ""),
            (Code::Unimplemented, "unknown service", Backend, false, "not etcd"),
            // Of a proxy in between, which says nothing of what etcd did.
            (Code::ResourceExhausted, "received message larger than max", Indeterminate, true, ""),
            (Code::NotFound, "no route", Indeterminate, true, ""),
            (Code::PermissionDenied, "not from here", Indeterminate, true, ""),
            (Code::FailedPrecondition, "not now", Indeterminate, true, ""),
        ] {
            let found = of(code, message, Indeterminate);
            assert_eq!((found.0, found.1, found.2.is_empty()), (kind, elsewhere, advice.is_empty()), "{message}");
            assert!(found.2.contains(advice), "{message}: {}", found.2);
        }
        assert_eq!(of(Code::Unknown, "", Unavailable).0, Unavailable, "what only reads changes nothing");
    }

    #[test]
    fn what_etcd_does_not_keep_is_known_by_class_and_words() {
        use ErrorKind::{Backend, Unavailable};
        let told = |kind, words: &str| Error::new(kind, "acquire").detail(words);
        let (compacted, gone) = ("required revision has been compacted", "requested lease not found");
        let found = |kind, words| (is_compacted(&told(kind, words)), is_lease_gone(&told(kind, words)));
        assert_eq!((found(Backend, compacted), found(Backend, gone)), ((true, false), (false, false)));
        assert_eq!((found(Unavailable, gone), found(Unavailable, compacted)), ((false, true), (false, false)));
    }
}
