use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use leasehold_core::{Error, ErrorKind, Result};
use nix::unistd::{Uid, User};
use percent_encoding::percent_decode_str;
use rustix::process::geteuid;

use crate::error::BACKEND;

/// The parts of a `file:` URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// `None` for the default directory.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) namespace: Option<String>,
    /// Whether it says that the file system is of this machine alone.
    pub(crate) is_local: bool,
}

impl Address {
    /// Parses `file:`, `file:/DIR` or `file:///DIR`, each with an optional `?namespace=NAME&filesystem=local`.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let rest = url.strip_prefix("file:").ok_or_else(|| wrong("the URL does not start with file:"))?;
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let path = match path.strip_prefix("//") {
            Some(named) => {
                let (host, _) = named.split_at(named.find('/').unwrap_or(named.len()));
                if !host.is_empty() && host != "localhost" {
                    return Err(wrong("the URL names a machine; locks in files are for this one: file:///DIR"));
                }
                &named[host.len()..]
            }
            None => path,
        };
        let bytes: Vec<u8> = percent_decode_str(path).collect();
        if bytes.contains(&0) {
            return Err(wrong("there is a NUL in the directory's name"));
        }
        let directory = (!bytes.is_empty()).then(|| PathBuf::from(OsString::from_vec(bytes)));
        if directory.as_ref().is_some_and(|directory: &PathBuf| !directory.is_absolute()) {
            // Programs that are started in different directories would not exclude each other, and no shell has read a tilde.
            return Err(wrong("the directory is not absolute: write file:/DIR"));
        }
        let (mut namespace, mut is_local) = (None, false);
        for pair in query.into_iter().flat_map(|query| query.split('&')) {
            match pair.split_once('=') {
                Some(("namespace", name)) => {
                    let name = percent_decode_str(name).decode_utf8();
                    namespace = Some(name.map_err(|_| wrong("the namespace is not UTF-8"))?.into_owned());
                }
                Some(("filesystem", "local")) => is_local = true,
                _ => return Err(wrong("the URL has a parameter that is neither namespace=NAME nor filesystem=local")),
            }
        }
        Ok(Self { directory, namespace, is_local })
    }
}

fn wrong(why: &str) -> Error {
    Error::new(ErrorKind::InvalidOptions, "open locks").with_backend(BACKEND).detail(why)
}

/// The default directory. It is the same for every process of a user, whatever is in its environment: a cron job and a login
/// session with different directories would not exclude each other. No other user can create a directory in the user's home.
pub(crate) fn default_dir() -> Result<PathBuf> {
    let us = geteuid();
    let known = User::from_uid(Uid::from_raw(us.as_raw()));
    // A user that cannot be looked up now may be found later, and would have another directory then.
    let known = known.map_err(|cause| {
        let error = Error::new(ErrorKind::Unavailable, "open locks").with_backend(BACKEND);
        error.detail("cannot look up this user's home directory; name a directory").caused_by(io::Error::from(cause))
    })?;
    Ok(default_dir_of(known.map(|user| user.dir), us.as_raw()))
}

fn default_dir_of(home: Option<PathBuf>, user: u32) -> PathBuf {
    let is_theirs = |home: &PathBuf| fs::metadata(home).is_ok_and(|found| found.is_dir() && found.uid() == user);
    match home.filter(|home| home.is_absolute() && is_theirs(home)) {
        Some(home) => home.join(".local/state/leasehold"),
        None => PathBuf::from(format!("/tmp/leasehold-{user}")),
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::corpus_of_text;

    use super::*;

    #[test]
    fn whatever_the_url_is_it_names_a_directory_or_is_refused() {
        corpus_of_text(include_str!("../corpus/urls.txt"), |url| match Address::parse(url) {
            Ok(address) => {
                assert!(address.directory.is_none_or(|directory| !directory.as_os_str().is_empty()), "{url}");
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{url}"),
        });
    }

    #[test]
    fn urls_name_a_directory_and_a_namespace_and_may_say_that_the_file_system_is_local() {
        let table = [
            ("file:", None, None, false),
            ("file://", None, None, false),
            ("file:/var/locks", Some("/var/locks"), None, false),
            ("file:///var/locks", Some("/var/locks"), None, false),
            ("file://localhost/var/locks", Some("/var/locks"), None, false),
            ("file:///a%20b%3F?namespace=x", Some("/a b?"), Some("x"), false),
            ("file:?namespace=a%26b", None, Some("a&b"), false),
            ("file:/d?namespace=", Some("/d"), Some(""), false),
            ("file:?filesystem=local", None, None, true),
            ("file:/d?namespace=x&filesystem=local", Some("/d"), Some("x"), true),
        ];
        for (url, directory, namespace, is_local) in table {
            let expected =
                Address { directory: directory.map(Into::into), namespace: namespace.map(Into::into), is_local };
            assert_eq!(Address::parse(url).unwrap(), expected, "{url}");
        }
    }

    #[test]
    fn other_urls_are_refused() {
        for url in [
            "",
            "file:locks",
            "file:./locks",
            "file:~/locks",
            "file://localhost?namespace=n&filesystem=shared",
            "files",
            "redis://h",
            "file://other/d",
            "file:/d?",
            "file:/d?ns=x",
            "file:/d?namespace",
            "file:/a%00b",
            "file:/d?namespace=%ff",
        ] {
            assert_eq!(Address::parse(url).unwrap_err().kind(), ErrorKind::InvalidOptions, "{url}");
        }
    }

    #[test]
    fn the_default_is_in_the_users_home_if_it_is_theirs() {
        let dir = tempfile::tempdir().unwrap();
        let us = geteuid().as_raw();
        let fallback = |user: u32| PathBuf::from(format!("/tmp/leasehold-{user}"));
        assert_eq!(default_dir_of(Some(dir.path().into()), us), dir.path().join(".local/state/leasehold"));
        assert_eq!(default_dir_of(None, us), fallback(us));
        for home in ["", "relative", "/no/such/directory", "/dev/null"] {
            assert_eq!(default_dir_of(Some(home.into()), us), fallback(us), "{home}");
        }
        assert_eq!(default_dir_of(Some(dir.path().into()), us + 1), fallback(us + 1));
    }
}
