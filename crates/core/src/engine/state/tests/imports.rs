//! The state machine does no I/O: it does not even name what could.

use std::fs;
use std::path::Path;

/// The roots that its files import from.
const ALLOWED: [&str; 12] = [
    "std::borrow::Cow",
    "std::collections",
    "std::hash::BuildHasher",
    "std::mem",
    "std::num",
    "std::time::Duration",
    "hashbrown::",
    "smallvec::",
    "crate::clock::Moment",
    "crate::",
    "super::",
    SHARED,
];
/// A value that is shared, which waits for nothing; the rest of its module does.
const SHARED: &str = "std::sync::Arc;";
/// What is below one of them and not a value.
const FORBIDDEN: [&str; 10] =
    ["Clock", "tokio", "futures", "rand::", "uuid", "async ", ".await", "Instant", "SystemTime", "std::sync"];

#[test]
fn the_state_machine_imports_nothing_that_waits_reads_a_clock_or_is_random() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/state");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // What is only there in tests may do more.
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() || name == "check.rs" {
            continue;
        }
        files += 1;
        let text = fs::read_to_string(&path).unwrap();
        let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for line in &code {
            let imported = line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
            if let Some(path) = imported.strip_prefix("use ") {
                let path = path.trim_start_matches("self::");
                let own = !path.contains("::") || imported.starts_with("use self::");
                let known = own || ALLOWED.iter().any(|root| path.starts_with(root));
                assert!(known, "{name}: {line}");
            }
            let line = line.replace(SHARED, "");
            for word in FORBIDDEN {
                assert!(!line.contains(word), "{name} has {word:?}: {line}");
            }
        }
    }
    assert!(files >= 10, "{files} files are not the state machine");
}
