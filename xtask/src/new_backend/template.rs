//! The files of a new crate: those of `xtask/templates/backend`, which is the crate of a store that is named `new-store`.

use super::name::Name;
use crate::workspace::{files, read, root};

/// The names and texts of the files of a crate of this workspace, or of one that depends on this checkout.
pub(crate) fn of(name: &Name, standalone: bool) -> Result<Vec<(String, String)>, String> {
    let folder = root().join("xtask/templates/backend");
    let text = |file: &str| read(&folder.join(file));
    let mut all = vec![("README.md".to_owned(), text("README.md")?)];
    for file in files(&folder.join("src")) {
        let name = file.strip_prefix(&folder).unwrap_or(&file).display().to_string();
        all.push((name, read(&file)?));
    }
    // Here the suite is a module of the crate's one program of tests, elsewhere it is a program.
    let kind = if standalone { "standalone" } else { "workspace" };
    let suite = text(&format!("tests/{kind}.rs"))? + &text("tests/fixture.rs")?;
    let manifest = text(&format!("{kind}.toml"))?;
    let more = if standalone {
        vec![
            ("Cargo.toml", with_this_checkout(&manifest)?),
            ("tests/conformance.rs", suite),
            (".gitignore", "/target\n".to_owned()),
        ]
    } else {
        vec![("Cargo.toml", manifest), ("tests/it/main.rs", text("tests/main.rs")?), ("tests/it/conformance.rs", suite)]
    };
    all.extend(more.into_iter().map(|(file, text)| (file.to_owned(), text)));
    for (_, text) in &mut all {
        *text = text
            .replace("new-store", name.as_str())
            .replace("new_store", &name.module())
            .replace("NEW_STORE", &name.module().to_uppercase())
            .replace("NewStore", &name.type_name());
    }
    Ok(all)
}

/// A manifest that names this checkout, and the values of its workspace.
fn with_this_checkout(manifest: &str) -> Result<String, String> {
    let workspace = read(&root().join("Cargo.toml"))?;
    // A text in JSON is one in TOML.
    let core = serde_json::to_string(&root().join("crates/core").to_string_lossy()).map_err(|e| e.to_string())?;
    let mut manifest = manifest.replace("CORE_PATH", &core);
    for (place, key) in [("RUST_VERSION", "rust-version"), ("REPOSITORY", "repository"), ("CORE_VERSION", "version")] {
        let value = |line: &str| Some(line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned());
        let value = workspace.lines().find_map(value).ok_or_else(|| format!("Cargo.toml does not say {key}"))?;
        manifest = manifest.replace(place, &value);
    }
    Ok(manifest)
}
