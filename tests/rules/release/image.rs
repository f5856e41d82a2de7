//! The container image of the program, as far as it can be checked without building it.

use crate::repository::{read, root};

fn dockerfile() -> Vec<String> {
    let text = read(&root().join("docker/Dockerfile")).replace("\\\n", " ");
    text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).map(str::to_owned).collect()
}

#[test]
fn it_is_built_with_the_oldest_rust_that_is_promised() {
    let manifest = read(&root().join("Cargo.toml"));
    let promised = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).expect("it is promised");
    let image = format!("FROM rust:{}-", promised.trim_matches('"'));
    assert!(dockerfile()[0].starts_with(&image), "the image is not built by {image}…");
}

#[test]
fn all_that_is_copied_and_run_out_of_the_repository_is_there() {
    let mut found = 0;
    for line in dockerfile() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let paths = match words.as_slice() {
            ["COPY", sources @ .., _] if !sources.iter().any(|word| word.starts_with("--from")) => sources.to_vec(),
            ["RUN", script, ..] if script.starts_with("docker/") => vec![*script],
            _ => continue,
        };
        for path in paths {
            assert!(root().join(path).exists(), "{path} is not there: {line}");
            found += 1;
        }
    }
    assert!(found >= 2, "the Dockerfile was not read");
    let ignored = read(&root().join("docker/Dockerfile.dockerignore"));
    assert!(ignored.lines().any(|line| line == "target"), "a build of the host would be sent to Docker");
}

#[test]
fn the_program_does_not_run_as_root() {
    let last_stage = dockerfile().into_iter().rev().take_while(|line| !line.starts_with("FROM")).collect::<Vec<_>>();
    let user = last_stage.iter().find_map(|line| line.strip_prefix("USER ")).unwrap_or("0");
    assert!(user.parse::<u32>().is_ok_and(|id| id > 0), "it runs as {user}");
}
