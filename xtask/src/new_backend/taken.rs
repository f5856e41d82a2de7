//! The names that something of this workspace has, so that no new backend can have them.

use std::fs;

use crate::workspace::root;

/// A file that gives names, what they name, and how to find them in its text.
type Source = (&'static str, &'static str, fn(&str) -> Vec<&str>);

const SOURCES: [Source; 5] = [
    ("crates/leasehold/src/backends.rs", "a feature or a scheme of another store", features_and_schemes),
    ("crates/leasehold/Cargo.toml", "a feature", features),
    ("crates/cli/Cargo.toml", "a feature", features),
    // Also a private one hides what comes from the list of backends.
    ("crates/leasehold/src/lib.rs", "a module of the library", modules),
    // The library gives all of it on, and of two modules with one name neither.
    ("crates/core/src/lib.rs", "a module of the library", public_modules),
];

/// What has this name, written with underscores in Rust, and in which file.
pub(crate) fn by(name: &str, module: &str) -> Result<Option<String>, String> {
    for (file, what, names) in SOURCES {
        let text = fs::read_to_string(root().join(file)).map_err(|e| format!("{file}: {e}"))?;
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
    let lines =
        list.lines().skip_while(|line| !line.starts_with("built_in! {")).take_while(|line| !line.starts_with('}'));
    lines.flat_map(|line| line.split('"').skip(1).step_by(2)).collect()
}

/// The keys of the table `[features]`.
fn features(manifest: &str) -> Vec<&str> {
    let lines =
        manifest.lines().skip_while(|line| *line != "[features]").skip(1).take_while(|line| !line.starts_with('['));
    let keys = lines.filter_map(|line| Some(line.split_once('=')?.0.trim().trim_matches('"')));
    keys.filter(|key| !key.starts_with('#')).collect()
}

fn modules(root: &str) -> Vec<&str> {
    root.lines()
        .filter_map(|line| line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ")?.strip_suffix(';'))
        .collect()
}

fn public_modules(root: &str) -> Vec<&str> {
    root.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_they_are_given_and_nowhere_else() {
        let list = "// \"a\"\nbuilt_in! {\n    x = y, \"b\", [\n        \"c\", \"d\"\n    ];\n}\nlet e = \"e\";\n";
        assert_eq!(features_and_schemes(list), ["b", "c", "d"]);
        let manifest =
            "[package]\na = 1\n[features]\n## b = it\nb = [\"x\"]\n\"c\"=[\n    \"y\",\n]\n\n[dependencies]\nd = 1\n";
        assert_eq!(features(manifest), ["b", "c"]);
        let root = "// mod a;\nmod b;\npub mod c;\npub use c::mod_d;\nmod tests {\n    mod e;\n}\n";
        assert_eq!((modules(root), public_modules(root)), (vec!["b", "c"], vec!["c"]));
    }

    #[test]
    fn every_source_of_this_workspace_gives_names() {
        for (file, _, names) in SOURCES {
            let text = fs::read_to_string(root().join(file)).unwrap();
            assert!(!names(&text).is_empty(), "{file}");
        }
        assert_eq!(by("dynamo-db", "dynamo_db"), Ok(None));
    }
}
