use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

use crate::exit::Failure;
use crate::wording;

/// Reads the first line of the file. Refuses a file that another user could have written.
pub(crate) fn read_password(path: &Path) -> Result<String, Failure> {
    let text = read_trusted(path, "put a password that does not come from one into LEASEHOLD_PASSWORD");
    let password = text.and_then(|text| match text.lines().next() {
        Some(password) if !password.is_empty() => Ok(password.to_owned()),
        _ => Err(io::Error::other("its first line is empty, and would be no password at all")),
    });
    password.map_err(|cause| Failure::Password { file: path.display().to_string(), cause })
}

/// Reads a file that no other user could have written. `instead` is what to do about one that is no regular file.
pub(crate) fn read_trusted(path: &Path, instead: &str) -> io::Result<String> {
    const LONGEST: u64 = 64 * 1024;
    // Opening a pipe would wait until a process opens its other end, and no signal would interrupt that.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let found = file.metadata()?;
    let refuse = |why: &str| Err(io::Error::other(why.to_owned()));
    if !found.is_file() {
        return refuse(&format!("it is not a regular file; {instead}"));
    }
    if ![0, geteuid().as_raw()].contains(&found.uid()) {
        return refuse("it belongs to another user");
    }
    if found.mode() & 0o022 != 0 {
        return refuse("others can write to it; run chmod go-w on it");
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// A warning of a password file that others can read.
pub(crate) fn others_can_read(path: &Path) -> Option<String> {
    let mode = path.metadata().ok().filter(Metadata::is_file)?.mode();
    (mode & 0o044 != 0)
        .then(|| format!("others can read {}; run chmod go-r on it", wording::shown(&path.display().to_string())))
}

/// Replaces every argument in `text` that could contain a password.
pub(crate) fn redact_all(text: &str, args: impl IntoIterator<Item = OsString>) -> String {
    // clap prints arguments that are not UTF-8 in this form, too.
    let args = args.into_iter().map(|arg| arg.to_string_lossy().into_owned());
    args.filter(|arg| arg.contains('@') && arg.contains(':')).fold(text.to_owned(), |text, arg| {
        let url = arg.strip_prefix("--backend=").unwrap_or(&arg);
        text.replace(url, "…")
    })
}
