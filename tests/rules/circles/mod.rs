//! No two files of a package import each other in a circle.
//!
//! `graph.rs` reads which file imports what from which other one, and this file looks for the circles in it. A `mod x;` is no
//! import, and neither is a re-export: what is imported through one counts as imported from the file that defines it.

mod graph;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use self::graph::Imports;
use crate::repository::{crates, root};

#[test]
fn no_two_files_import_each_other_in_a_circle() {
    let circles: Vec<String> = roots().into_iter().flat_map(|root| circles(&graph::of_package(&root))).collect();
    assert!(circles.is_empty(), "\n{}\n", circles.join("\n"));
}

/// The crate root of every package with more than one file.
fn roots() -> Vec<PathBuf> {
    let packages = crates().into_iter().map(|folder| folder.join("src"));
    let all = packages.chain(["xtask/src", "benches/workloads", "tests/chaos/src"].map(|folder| root().join(folder)));
    let files = all.flat_map(|folder| [folder.join("lib.rs"), folder.join("main.rs")]);
    let mut roots: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
    roots.sort();
    assert!(roots.len() >= 10, "too few packages were found: {roots:?}");
    roots
}

/// One circle of each group of files that reach each other, spelled out: `a.rs -> b.rs (names) -> a.rs (names)`.
fn circles(imports: &Imports) -> Vec<String> {
    let mut told: BTreeSet<&String> = BTreeSet::new();
    let mut circles = Vec::new();
    for start in imports.keys() {
        if told.contains(start) {
            continue;
        }
        let Some(way) = shortest_way_back(imports, start) else { continue };
        let group = imports.keys().filter(|other| reaches(imports, start, other) && reaches(imports, other, start));
        told.extend(group);
        circles.push(spelled(imports, &way));
    }
    circles
}

fn spelled(imports: &Imports, way: &[&String]) -> String {
    let steps = way.windows(2).map(|step| {
        let names: Vec<&str> = imports[step[0]][step[1]].iter().map(String::as_str).collect();
        format!("\n  -> {} ({})", step[1], names.join(", "))
    });
    format!("{}{}", way[0], steps.collect::<String>())
}

fn reaches(imports: &Imports, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        for found in imports.get(file).into_iter().flat_map(BTreeMap::keys) {
            if found == to {
                return true;
            }
            if seen.insert(found) {
                next.push(found);
            }
        }
    }
    false
}

/// The files of the shortest circle through `start`, which is the first and the last of them.
fn shortest_way_back<'i>(imports: &'i Imports, start: &'i String) -> Option<Vec<&'i String>> {
    let mut came_from: BTreeMap<&String, &String> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(file) = next.pop_front() {
        for found in imports.get(file).into_iter().flat_map(BTreeMap::keys) {
            if found == start {
                let mut way = vec![start, file];
                while let Some(before) = came_from.get(way[way.len() - 1]) {
                    way.push(before);
                }
                way.reverse();
                if way[0] != start {
                    way.insert(0, start);
                }
                return Some(way);
            }
            if !came_from.contains_key(found) {
                came_from.insert(found, file);
                next.push_back(found);
            }
        }
    }
    None
}

#[test]
fn a_circle_is_found_and_spelled_out() {
    let import = |to: &str, name: &str| BTreeMap::from([(to.to_owned(), BTreeSet::from([name.to_owned()]))]);
    let imports = Imports::from([
        ("a.rs".to_owned(), import("b.rs", "B")),
        ("b.rs".to_owned(), import("c.rs", "C")),
        ("c.rs".to_owned(), import("a.rs", "A")),
        ("d.rs".to_owned(), import("a.rs", "A")),
    ]);
    assert_eq!(circles(&imports), ["a.rs\n  -> b.rs (B)\n  -> c.rs (C)\n  -> a.rs (A)"]);
}
