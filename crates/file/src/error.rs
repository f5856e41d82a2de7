//! Maps errors of the file system to the errors of the crate. No other module decides on an error's kind.

use std::io;
use std::path::Path;

use leasehold_core::{Error, ErrorKind};
use rustix::io::Errno;

/// The name of this backend in errors, metrics and reports.
pub(crate) const BACKEND: &str = "file";

/// Why a directory is [`refused`] that must not be created.
pub(crate) const NOTHING_THERE: &str = "does not exist: nothing has been locked there";

/// Why what has to stay there is [`unavailable`].
pub(crate) const REMOVED: &str = "was removed just now";

/// The error for an operation `doing` on `path` that the file system refused with `cause`.
pub(crate) fn failed(doing: &str, path: impl AsRef<Path>, cause: io::Error) -> Error {
    error(kind(&cause)).detail(format!("cannot {doing} {}", path.as_ref().display())).caused_by(cause)
}

/// The error for a fault of `path` that only a person can repair.
pub(crate) fn refused(path: impl AsRef<Path>, why: &str) -> Error {
    error(ErrorKind::Backend).detail(format!("{} {why}", path.as_ref().display()))
}

/// The error for a fault of `path` that is temporary.
pub(crate) fn unavailable(path: impl AsRef<Path>, why: &str) -> Error {
    error(ErrorKind::Unavailable).detail(format!("{} {why}", path.as_ref().display()))
}

/// The operation named here is a placeholder: the engine replaces it.
fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "open locks").with_backend(BACKEND)
}

/// The kind of an error. None is `Indeterminate`: a grant is returned only after its last step, so a failed operation has
/// granted nothing.
fn kind(cause: &io::Error) -> ErrorKind {
    match Errno::from_io_error(cause) {
        // Resources that are exhausted now can become available again.
        Some(
            Errno::NOSPC
            | Errno::DQUOT
            | Errno::MFILE
            | Errno::NFILE
            | Errno::NOMEM
            | Errno::NOLCK
            | Errno::INTR
            | Errno::AGAIN
            | Errno::BUSY,
        ) => ErrorKind::Unavailable,
        _ => ErrorKind::Backend,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortage_is_transient_and_refusal_is_not() {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOLCK] {
            assert_eq!(kind(&errno.into()), ErrorKind::Unavailable, "{errno:?}");
        }
        for errno in [Errno::ACCESS, Errno::PERM, Errno::ROFS, Errno::LOOP, Errno::NOTDIR, Errno::FBIG, Errno::IO] {
            assert_eq!(kind(&errno.into()), ErrorKind::Backend, "{errno:?}");
        }
        assert_eq!(kind(&io::Error::other("no errno")), ErrorKind::Backend);
    }
}
