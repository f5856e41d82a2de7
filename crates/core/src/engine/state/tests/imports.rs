//! The state machine does no I/O: it does not even name what could.

use std::fs;
use std::path::Path;

/// A value that is shared, which waits for nothing; the rest of its module does.
const SHARED: &str = "std::sync::Arc;";
/// The roots that its files import from, beside that.
const ALLOWED: &str = "std::borrow::Cow std::collections std::hash::BuildHasher std::mem std::num std::time::Duration \
                       hashbrown:: smallvec:: crate:: super::";
/// What is below one of them and not a value.
const FORBIDDEN: [&str; 10] =
    ["Clock", "tokio", "futures", "rand::", "uuid", "async ", ".await", "Instant", "SystemTime", "std::sync"];

#[test]
fn the_state_machine_imports_nothing_that_waits_reads_a_clock_or_is_random() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/state");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    // What is only there in tests may do more.
    let files: Vec<_> = paths.filter(|path| path.is_file() && !path.ends_with("check.rs")).collect();
    assert!(files.len() >= 10, "{files:?} are not the state machine");
    for file in files {
        let (name, text) = (file.display(), fs::read_to_string(&file).unwrap());
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let line = line.replace(SHARED, "");
            let imported = line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
            if let Some(path) = imported.strip_prefix("use ") {
                let path = path.trim_start_matches("self::");
                let own = !path.contains("::") || imported.starts_with("use self::");
                let known = own || ALLOWED.split(' ').any(|root| path.starts_with(root));
                assert!(known, "{name}: {line}");
            }
            for word in FORBIDDEN {
                assert!(!line.contains(word), "{name} has {word:?}: {line}");
            }
        }
    }
}
