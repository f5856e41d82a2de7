use leasehold_core::{Error, ErrorKind};

use crate::client::connection::Connection;

/// The error for an answer that is none of a script's own.
///
/// `foreign`, key, type: there is an entry under our name that we did not write. `refused`, reply: the server refused
/// a step.
pub(crate) fn script_error(connection: &Connection, words: &[&str]) -> Error {
    match *words {
        ["foreign", key, kind] => {
            let kind = if kind.is_empty() { "another type" } else { kind };
            let told = format!(
                "the entry `{key}` is not of this backend: {kind}; if another one, or another version, locks there, give each a \
                 namespace of its own, else delete it"
            );
            Error::new(ErrorKind::Backend, "ask Redis").detail(connection.quote(&told))
        }
        ["endless", key] => {
            let told =
                format!("the entry `{key}` never expires, so Leasehold did not write it; force-release frees it");
            Error::new(ErrorKind::Backend, "ask Redis").detail(connection.quote(&told))
        }
        ["spent", key] => {
            let told = format!("the counter `{key}` is beyond the year 2248; delete it");
            Error::new(ErrorKind::Backend, "ask Redis").detail(connection.quote(&told))
        }
        ["refused", reply] => connection.refused(reply),
        _ => Error::new(ErrorKind::Backend, "ask Redis").detail("the script gave an answer that nobody understands"),
    }
}
