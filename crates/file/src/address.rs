use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use leasehold_core::{Error, ErrorKind, Result};
use percent_encoding::percent_decode_str;
use rustix::process::geteuid;

use crate::fault::BACKEND;

/// What a URL says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// `None`: the user's own.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) namespace: Option<String>,
}

impl Address {
    /// `file:`, `file:DIR`, `file:///DIR`, each with `?namespace=NAME` if wanted.
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
        let mut namespace = None;
        for pair in query.into_iter().flat_map(|query| query.split('&')) {
            match pair.split_once('=') {
                Some(("namespace", name)) => {
                    let name = percent_decode_str(name).decode_utf8();
                    namespace = Some(name.map_err(|_| wrong("the namespace is not UTF-8"))?.into_owned());
                }
                _ => return Err(wrong("the URL has a parameter that is not namespace=NAME")),
            }
        }
        Ok(Self { directory, namespace })
    }
}

fn wrong(why: &str) -> Error {
    Error::new(ErrorKind::InvalidOptions, "open locks").backend(BACKEND).detail(why)
}

/// `leasehold` in the user's runtime directory or, without one, `leasehold-UID` in the system's temporary directory.
pub(crate) fn default_dir() -> PathBuf {
    default_dir_of(env::var_os("XDG_RUNTIME_DIR"), &env::temp_dir(), geteuid().as_raw())
}

fn default_dir_of(runtime: Option<OsString>, temporary: &Path, user: u32) -> PathBuf {
    let runtime = runtime.map(PathBuf::from).filter(|path| path.is_absolute());
    // After `su` or `sudo` it may still be another user's.
    let ours = runtime.filter(|path| fs::metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user));
    ours.map_or_else(|| temporary.join(format!("leasehold-{user}")), |path| path.join("leasehold"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_directory_and_a_namespace() {
        let table = [
            ("file:", None, None),
            ("file://", None, None),
            ("file:locks", Some("locks"), None),
            ("file:/var/locks", Some("/var/locks"), None),
            ("file:///var/locks", Some("/var/locks"), None),
            ("file://localhost/var/locks", Some("/var/locks"), None),
            ("file:///a%20b%3F?namespace=x", Some("/a b?"), Some("x")),
            ("file:?namespace=a%26b", None, Some("a&b")),
            ("file:/d?namespace=", Some("/d"), Some("")),
        ];
        for (url, directory, namespace) in table {
            let expected = Address { directory: directory.map(Into::into), namespace: namespace.map(Into::into) };
            assert_eq!(Address::parse(url).unwrap(), expected, "{url}");
        }
    }

    #[test]
    fn other_urls_are_refused() {
        for url in [
            "",
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
    fn the_default_is_the_users_runtime_directory_if_it_is_theirs() {
        let dir = tempfile::tempdir().unwrap();
        let us = geteuid().as_raw();
        let theirs = |runtime: &str| default_dir_of(Some(runtime.into()), Path::new("/t"), us);
        assert_eq!(default_dir_of(Some(dir.path().into()), Path::new("/t"), us), dir.path().join("leasehold"));
        let fallback = PathBuf::from(format!("/t/leasehold-{us}"));
        assert_eq!(default_dir_of(None, Path::new("/t"), us), fallback);
        assert_eq!(theirs(""), fallback);
        assert_eq!(theirs("relative"), fallback);
        assert_eq!(theirs("/no/such/directory"), fallback);
        assert_eq!(
            default_dir_of(Some(dir.path().into()), Path::new("/t"), us + 1),
            PathBuf::from(format!("/t/leasehold-{}", us + 1))
        );
    }
}
