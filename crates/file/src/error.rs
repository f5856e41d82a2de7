//! What the file system's errors mean for a caller: the one place that decides.

use std::io;
use std::path::Path;

use leasehold_core::{Error, ErrorKind};
use rustix::io::Errno;

/// The name in errors, metrics and reports.
pub(crate) const BACKEND: &str = "file";

/// An error that the file system gave while we were `doing` something to `path`.
pub(crate) fn failed(doing: &str, path: impl AsRef<Path>, cause: io::Error) -> Error {
    error(kind(&cause)).detail(format!("cannot {doing} {}", path.as_ref().display())).caused_by(cause)
}

/// Something about `path` that only a person can put right.
pub(crate) fn refused(path: impl AsRef<Path>, why: &str) -> Error {
    error(ErrorKind::Backend).detail(format!("{} {why}", path.as_ref().display()))
}

/// Something that passes by itself.
pub(crate) fn unavailable(path: impl AsRef<Path>, why: &str) -> Error {
    error(ErrorKind::Unavailable).detail(format!("{} {why}", path.as_ref().display()))
}

/// The engine puts the operation in the place of this one.
fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "open locks").with_backend(BACKEND)
}

/// Nothing is ever half applied: a grant is handed out after its last step, so no error is `Indeterminate`.
fn kind(cause: &io::Error) -> ErrorKind {
    match Errno::from_io_error(cause) {
        // Others may give back what there is too little of.
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
        let table = [
            (Errno::NOSPC, ErrorKind::Unavailable),
            (Errno::DQUOT, ErrorKind::Unavailable),
            (Errno::MFILE, ErrorKind::Unavailable),
            (Errno::NFILE, ErrorKind::Unavailable),
            (Errno::NOMEM, ErrorKind::Unavailable),
            (Errno::NOLCK, ErrorKind::Unavailable),
            (Errno::ACCESS, ErrorKind::Backend),
            (Errno::PERM, ErrorKind::Backend),
            (Errno::ROFS, ErrorKind::Backend),
            (Errno::LOOP, ErrorKind::Backend),
            (Errno::NOTDIR, ErrorKind::Backend),
            (Errno::ISDIR, ErrorKind::Backend),
            (Errno::FBIG, ErrorKind::Backend),
            (Errno::IO, ErrorKind::Backend),
            (Errno::NOENT, ErrorKind::Backend),
        ];
        for (errno, expected) in table {
            assert_eq!(kind(&errno.into()), expected, "{errno:?}");
        }
        assert_eq!(kind(&io::Error::other("no errno")), ErrorKind::Backend);
    }

    #[test]
    fn the_path_is_in_the_text_and_the_cause_behind_it() {
        let error = failed("create", Path::new("/no/where"), Errno::ACCESS.into());
        assert_eq!(error.to_string(), "open locks on file: refused by the store: cannot create /no/where");
        assert!(std::error::Error::source(&error).unwrap().to_string().contains("ermission denied"));
    }
}
