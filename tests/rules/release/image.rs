//! The container image of the program, as far as it can be checked without building it.

use crate::repository::{published, read, root};

#[test]
fn the_image_is_built_by_the_promised_rust_of_what_is_there_and_does_not_run_as_root() {
    let text = read(&root().join("docker/Dockerfile")).replace("\\\n", " ");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).collect();
    let promised = published()[0].metadata["rust_version"].as_str().expect("it is promised");
    assert!(lines[0].starts_with(&format!("FROM rust:{promised}-")), "{} by Rust {promised}", lines[0]);

    let copied = lines.iter().filter_map(|line| line.strip_prefix("COPY ")).filter(|line| !line.starts_with("--from"));
    let run = lines.iter().filter_map(|line| line.strip_prefix("RUN ")).filter(|line| line.starts_with("docker/"));
    let paths: Vec<&str> = copied.chain(run).filter_map(|line| line.split(' ').next()).collect();
    assert!(paths.len() >= 2, "the Dockerfile was not read: {paths:?}");
    assert!(paths.iter().all(|path| root().join(path).exists()), "one of these is not there: {paths:?}");
    let ignored = read(&root().join("docker/Dockerfile.dockerignore"));
    assert!(ignored.lines().any(|line| line == "target"), "a build of the host would be sent to Docker");

    let mut last_stage = lines.iter().rev().take_while(|line| !line.starts_with("FROM"));
    let user = last_stage.find_map(|line| line.strip_prefix("USER ")).unwrap_or("0");
    assert!(user.parse::<u32>().is_ok_and(|id| id > 0), "it runs as {user}");
}
