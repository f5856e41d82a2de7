//! No two files of a package import each other in a circle.
//!
//! A `mod x;` is no import, and neither is a re-export: what is imported through one counts as imported from the file that defines
//! it. Inline modules for tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::repository::{crates, name, read, root};

/// Importer and imported file, with the names.
type Imports = BTreeMap<(String, String), BTreeSet<String>>;

#[test]
fn no_two_files_import_each_other_in_a_circle() {
    let packages = crates().into_iter().map(|folder| folder.join("src"));
    let all = packages.chain(["xtask/src", "benches/workloads", "tests/chaos/src"].map(|folder| root().join(folder)));
    let mut imports = Imports::new();
    for file in all.flat_map(|folder| [folder.join("lib.rs"), folder.join("main.rs")]).filter(|file| file.is_file()) {
        let mut modules = Modules::new();
        add_file(&mut modules, &[], &file, file.parent().expect("a file is in a folder"));
        imports.extend(imports_of(&modules));
    }
    assert!(imports.len() > 500, "too few imports were found: {}", imports.len());
    let circles = circles(imports);
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn a_circle_is_found() {
    let import =
        |pair: &str| (pair.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap(), BTreeSet::new());
    let found = circles(["a b", "b c", "c a", "d a", "c e"].map(import).into());
    assert_eq!(found, ["a b", "b c", "c a"].map(import).into());
}

/// The imports of circles, and those between two of them: what leads to none, or comes from none, is taken away.
fn circles(mut imports: Imports) -> Imports {
    loop {
        let (from, to): (BTreeSet<_>, BTreeSet<_>) = imports.keys().cloned().unzip();
        let before = imports.len();
        imports.retain(|(importer, imported), _| to.contains(importer) && from.contains(imported));
        if imports.len() == before {
            return imports;
        }
    }
}

/// The modules of a package, by the names on the way to each.
type Modules = BTreeMap<Vec<String>, Module>;

#[derive(Default)]
struct Module {
    file: String,
    defines: BTreeSet<String>,
    /// Each path, with the name under which it is known here: `*` for all that is there, and none for one that its code contains.
    uses: Vec<(Vec<String>, String)>,
}

fn imports_of(modules: &Modules) -> Imports {
    let mut imports = Imports::new();
    for (at, module) in modules {
        for (path, _) in &module.uses {
            let Some((file, name)) = resolve(modules, at, path, 0) else { continue };
            if file != module.file {
                imports.entry((module.file.clone(), file)).or_default().insert(name);
            }
        }
    }
    imports
}

/// The file and the name of what a path leads to from a module. `None`: it leads out of the package, or names a module alone.
fn resolve(modules: &Modules, from: &[String], path: &[String], depth: usize) -> Option<(String, String)> {
    // Re-exports cannot go round for ever in what compiles, but this must not depend on it.
    if depth > 20 {
        return None;
    }
    let mut at = from.to_vec();
    for (number, name) in path.iter().enumerate() {
        let module = modules.get(&at)?;
        match name.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()?),
            _ => {
                at.push(name.clone());
                if modules.contains_key(&at) {
                    continue;
                }
                at.pop();
                if name == "*" || module.defines.contains(name) {
                    return Some((module.file.clone(), name.clone()));
                }
                let through =
                    |used: &[String], rest: &[String]| resolve(modules, &at, &[used, rest].concat(), depth + 1);
                let mut named = module.uses.iter().filter(|(used, known)| known == name && used.len() > 1);
                let mut globs = module.uses.iter().filter(|(_, known)| known == "*");
                return match named.next() {
                    Some((used, _)) => through(used, &path[number + 1..]),
                    None => globs.find_map(|(used, _)| through(&used[..used.len() - 1], &path[number..])),
                };
            }
        }
    }
    None
}

/// Reads a file as the module `at`, whose children are in `folder`.
fn add_file(modules: &mut Modules, at: &[String], file: &Path, folder: &Path) {
    let code: TokenStream = read(file).parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    modules.insert(at.to_vec(), Module { file: name(file), ..Module::default() });
    add_code(modules, at, code, folder);
}

fn add_code(modules: &mut Modules, at: &[String], code: TokenStream, folder: &Path) {
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    let word = |at: usize| tokens.get(at).map(ToString::to_string).unwrap_or_default();
    let is_path =
        |at: usize| word(at) == ":" && word(at + 1) == ":" && matches!(tokens.get(at + 2), Some(TokenTree::Ident(_)));
    let mut next = 0;
    while let Some(token) = tokens.get(next) {
        next += 1;
        match (token, word(next - 1).as_str()) {
            (TokenTree::Group(group), _) => add_code(modules, at, group.stream(), folder),
            // Not the lifetimes that a type captures: `use<'t>`.
            (TokenTree::Ident(_), "use") if word(next) != "<" => {
                let end = next + tokens[next..].iter().position(|token| token.to_string() == ";").unwrap_or_default();
                let module = modules.get_mut(at).expect("it was added");
                flatten(&[], &tokens[next..end], &mut module.uses);
                next = end;
            }
            (TokenTree::Ident(_), "mod") => {
                let child = [at, &[word(next)]].concat();
                let below = folder.join(word(next));
                match tokens.get(next + 1) {
                    Some(TokenTree::Group(_)) if is_for_tests(&tokens[..next - 1]) => {}
                    Some(TokenTree::Group(body)) => {
                        let file = modules[at].file.clone();
                        modules.insert(child.clone(), Module { file, ..Module::default() });
                        add_code(modules, &child, body.stream(), &below);
                    }
                    Some(TokenTree::Punct(_)) => {
                        let places = [below.with_extension("rs"), below.join("mod.rs")];
                        let file = places.iter().find(|place| place.is_file());
                        let file = file.unwrap_or_else(|| panic!("no file for `mod {};`", child.join("::")));
                        add_file(modules, &child, file, &below);
                    }
                    // The name is a parameter of a macro.
                    _ => {}
                }
                next += 2;
            }
            (
                TokenTree::Ident(_),
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" | "macro_rules",
            ) => {
                let name = tokens[next..].iter().find(|token| !["!", "mut"].contains(&token.to_string().as_str()));
                let module = modules.get_mut(at).expect("it was added");
                module.defines.extend(name.map(ToString::to_string));
            }
            (TokenTree::Ident(_), first) if is_path(next) => {
                let mut path = vec![first.to_owned()];
                while is_path(next) {
                    path.push(word(next + 2));
                    next += 3;
                }
                modules.get_mut(at).expect("it was added").uses.push((path, String::new()));
            }
            _ => {}
        }
    }
}

/// Whether an attribute with the word `test` stands before an item.
fn is_for_tests(before: &[TokenTree]) -> bool {
    let attributes = before.iter().rev().take(3).filter_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => Some(group.to_string()),
        _ => None,
    });
    attributes.into_iter().any(|attribute| attribute.contains("test"))
}

/// `a::{b, c::d as e}` as one path each.
fn flatten(before: &[String], tree: &[TokenTree], uses: &mut Vec<(Vec<String>, String)>) {
    for part in tree.split(|token| token.to_string() == ",").filter(|part| !part.is_empty()) {
        let renamed = part.iter().position(|token| token.to_string() == "as").unwrap_or(part.len());
        let names =
            part[..renamed].iter().filter(|token| matches!(token, TokenTree::Ident(_)) || token.to_string() == "*");
        let mut path = [before, &names.map(ToString::to_string).collect::<Vec<_>>()].concat();
        if let Some(TokenTree::Group(group)) = part.last() {
            flatten(&path, &group.stream().into_iter().collect::<Vec<_>>(), uses);
            continue;
        }
        path.pop_if(|last| last == "self");
        let known = part.get(renamed + 1).map(ToString::to_string).or_else(|| path.last().cloned());
        uses.extend(known.map(|known| (path, known)));
    }
}
