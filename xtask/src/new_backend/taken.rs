//! The names that something of this workspace has, so that no new backend can have them.

use crate::workspace::{read, root};

/// A file that gives names, what they name, and how to find them in its text.
type Source = (&'static str, &'static str, fn(&str) -> Vec<&str>);

const SOURCES: [Source; 5] = [
    ("crates/leasehold/src/backends.rs", "a feature or a scheme of another store", features_and_schemes),
    ("crates/leasehold/Cargo.toml", "a feature", features),
    ("crates/cli/Cargo.toml", "a feature", features),
    // Also a private one hides what comes from the list of backends.
    ("crates/leasehold/src/lib.rs", "a module of the library", |root| modules(root, &["mod ", "pub mod "])),
    // The library gives all of it on, and of two modules with one name neither.
    ("crates/core/src/lib.rs", "a module of the library", |root| modules(root, &["pub mod "])),
];

/// What has this name, written with underscores in Rust, and in which file.
pub(crate) fn by(name: &str, module: &str) -> Result<Option<String>, String> {
    for (file, what, names) in SOURCES {
        let text = read(&root().join(file))?;
        let names = names(&text);
        if names.is_empty() {
            return Err(format!("{file} names nothing that could be {what}"));
        }
        if names.iter().any(|taken| *taken == name || *taken == module) {
            return Ok(Some(format!("{what} has this name already, in {file}")));
        }
    }
    Ok(None)
}

/// The texts in the list of the backends that are built in, which are their features and their schemes.
fn features_and_schemes(list: &str) -> Vec<&str> {
    let lines = between(list, "built_in! {", '}');
    lines.flat_map(|line| line.split('"').skip(1).step_by(2)).collect()
}

/// The keys of the table `[features]`.
fn features(manifest: &str) -> Vec<&str> {
    let keys = between(manifest, "[features]", '[').filter(|line| !line.starts_with('#'));
    keys.filter_map(|line| Some(line.split_once('=')?.0.trim().trim_matches('"'))).collect()
}

fn modules<'a>(root: &'a str, begins: &[&str]) -> Vec<&'a str> {
    let module = |line: &'a str| begins.iter().find_map(|begin| line.strip_prefix(begin)?.strip_suffix(';'));
    root.lines().filter_map(module).collect()
}

/// The lines behind the one that begins so, up to the next that begins with this character.
fn between<'a>(text: &'a str, begins: &str, end: char) -> impl Iterator<Item = &'a str> {
    let lines = text.lines().skip_while(move |line| !line.starts_with(begins)).skip(1);
    lines.take_while(move |line| !line.starts_with(end))
}
