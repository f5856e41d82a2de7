use std::env;
use std::path::Path;
use std::process;
use std::sync::{Arc, LazyLock};

/// The label of a grant whose request has none: program, host and process id, such as `backup@db1:4711`.
///
/// It tells whoever may read the store which process holds a key. Where that is more than they should know, switch it
/// off or replace it: for one request by [`LockOptions::no_label`](crate::LockOptions::no_label) or
/// [`label`](crate::LockOptions::label), for a whole locker by
/// [`with_defaults`](crate::LockerExt::with_defaults):
///
/// ```
/// use leasehold_core::{LockOptions, LockerExt, Memory};
///
/// println!("grants are labelled {}", leasehold_core::default_label());
/// let nameless = Memory::new().with_defaults(LockOptions::new().no_label());
/// ```
///
/// The text is made once for a process and shared by all its requests.
pub fn default_label() -> Arc<str> {
    static LABEL: LazyLock<Arc<str>> = LazyLock::new(|| {
        let name = env::args_os().next();
        let program = name.as_deref().and_then(|name| Path::new(name).file_name()).unwrap_or_default();
        label(&program.to_string_lossy(), &host(), process::id())
    });
    Arc::clone(&LABEL)
}

/// At most 200 bytes, whatever the names are.
fn label(program: &str, host: &str, pid: u32) -> Arc<str> {
    let cut = |name: &str| {
        let end = (0..=name.len().min(90)).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        name[..end].to_owned()
    };
    let program = if program.is_empty() { "unknown" } else { program };
    format!("{}@{}:{pid}", cut(program), cut(host)).into()
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    env::var("COMPUTERNAME").unwrap_or_else(|_| "localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_program_host_and_process() {
        assert_eq!(&*label("backup", "db1", 4711), "backup@db1:4711");
        assert_eq!(&*label("", "db1", 1), "unknown@db1:1");
        let long = label(&"ü".repeat(200), &"h".repeat(200), u32::MAX);
        assert!(long.len() <= 200 && long.starts_with("üü") && long.ends_with("h:4294967295"), "{long}");
        let own = default_label();
        assert!(own.ends_with(&format!(":{}", process::id())) && own.contains('@'), "{own}");
        assert!(Arc::ptr_eq(&own, &default_label()));
    }
}
