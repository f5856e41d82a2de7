use leasehold_testkit::test;
use std::fs;
use std::path::Path;

/// The README lists each program, and each begins with what it shows and how it is run.
#[test]
fn every_program_is_listed_and_says_how_it_is_run() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(package.join("README.md")).expect("a README");
    let files = fs::read_dir(package.join("src/bin")).expect("the programs").flatten().map(|entry| entry.path());
    let programs: Vec<_> = files.collect();
    assert_eq!(readme.matches("](src/bin/").count(), programs.len(), "README.md lists what is not there");
    for file in programs {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(readme.contains(&format!("| [`{name}`](src/bin/{name}.rs) |")), "README.md does not list {name}");
        let text = fs::read_to_string(&file).expect("a program");
        let intro: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
        let runs = format!("//! $ cargo run -p leasehold-examples --bin {name} -- ");
        assert!(intro.len() >= 5 && intro.iter().any(|line| line.starts_with(&runs)), "{name}: {intro:#?}");
        assert!(text.lines().count() <= 130, "{name} does not fit on two screens");
    }
}
