//! Which file of a package imports what from which other one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::repository;
use crate::source::{Parsed, parse, tokens};

/// For each file, the files that it imports from, with the names.
pub(crate) type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// A module of the package.
struct Module {
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    parsed: Parsed,
}

/// What a path leads to.
#[derive(Clone, Copy)]
enum Target<'p> {
    /// A module itself, of which nothing was named.
    Module(usize),
    /// Something that this module defines, under the name that the path has for it.
    Item(usize, &'p str),
}

/// Reads a package from its `lib.rs` or `main.rs`.
pub(crate) fn of_package(root: &Path) -> Imports {
    let folder = root.parent().expect("a file is in a folder");
    let mut modules = Vec::new();
    read(&mut modules, root, folder, None);
    let mut imports = Imports::new();
    for (at, module) in modules.iter().enumerate() {
        let from_uses = module.parsed.uses.iter().map(|used| &used.path);
        let found = imports.entry(module.file.clone()).or_default();
        for path in from_uses.chain(&module.parsed.paths) {
            let Some(Target::Item(of, name)) = resolve(&modules, at, path, 0) else { continue };
            if modules[of].file != module.file {
                found.entry(modules[of].file.clone()).or_default().insert(name.to_owned());
            }
        }
    }
    imports
}

/// Reads a file and the modules that it declares, whose files are in `folder`.
fn read(modules: &mut Vec<Module>, file: &Path, folder: &Path, parent: Option<usize>) -> usize {
    let name = repository::name(file);
    let text = repository::read(file);
    add(modules, parse(&tokens(&text)), &name, folder, parent)
}

fn add(modules: &mut Vec<Module>, mut parsed: Parsed, file: &str, folder: &Path, parent: Option<usize>) -> usize {
    let (files, inline) = (std::mem::take(&mut parsed.files), std::mem::take(&mut parsed.inline));
    let at = modules.len();
    modules.push(Module { file: file.to_owned(), parent, children: BTreeMap::new(), parsed });
    for name in files {
        let below = folder.join(&name);
        let places: [PathBuf; 2] = [folder.join(format!("{name}.rs")), below.join("mod.rs")];
        let Some(child) = places.iter().find(|place| place.is_file()) else {
            panic!("{file}: no file for `mod {name};`")
        };
        let child = read(modules, child, &below, Some(at));
        modules[at].children.insert(name, child);
    }
    for parsed in inline {
        let name = parsed.name.clone();
        let child = add(modules, parsed, file, &folder.join(&name), Some(at));
        modules[at].children.insert(name, child);
    }
    at
}

/// Follows a path from a module of the package. `None`: it leads out of the package, or is none.
fn resolve<'p>(modules: &[Module], from: usize, path: &'p [String], depth: usize) -> Option<Target<'p>> {
    // Re-exports cannot go round for ever in what compiles, but this must not depend on it.
    if depth > 20 {
        return None;
    }
    let (first, rest) = path.split_first()?;
    let start = match first.as_str() {
        "crate" => {
            let mut root = from;
            while let Some(parent) = modules[root].parent {
                root = parent;
            }
            Target::Module(root)
        }
        "self" => Target::Module(from),
        "super" => Target::Module(modules[from].parent?),
        name => step(modules, from, name, depth)?,
    };
    let mut target = start;
    for name in rest {
        target = match target {
            Target::Module(module) if name == "super" => Target::Module(modules[module].parent?),
            Target::Module(module) if name == "*" => Target::Item(module, name),
            Target::Module(module) => step(modules, module, name, depth)?,
            // An associated item, or a variant.
            Target::Item(..) => return Some(target),
        };
    }
    Some(target)
}

/// What was found under another name, as this one.
fn named<'p>(target: Target<'_>, name: &'p str) -> Target<'p> {
    match target {
        Target::Module(module) => Target::Module(module),
        Target::Item(module, _) => Target::Item(module, name),
    }
}

/// What a name is in a module.
fn step<'p>(modules: &[Module], module: usize, name: &'p str, depth: usize) -> Option<Target<'p>> {
    let here = &modules[module];
    if let Some(child) = here.children.get(name) {
        return Some(Target::Module(*child));
    }
    if here.parsed.defines.iter().any(|defined| defined == name) {
        return Some(Target::Item(module, name));
    }
    let used = here.parsed.uses.iter().find(|used| used.name == name && used.path.len() > 1);
    if let Some(used) = used {
        return Some(named(resolve(modules, module, &used.path, depth + 1)?, name));
    }
    let mut globs = here.parsed.uses.iter().filter(|used| used.name == "*");
    globs.find_map(|used| {
        let of = resolve(modules, module, &used.path[..used.path.len() - 1], depth + 1)?;
        let Target::Module(of) = of else { return None };
        step(modules, of, name, depth + 1)
    })
}
