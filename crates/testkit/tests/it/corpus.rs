//! What a parser is run on.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use leasehold_testkit::{corpus, corpus_line, corpus_of_urls, test};

/// What a test is given by this corpus.
fn run(lines: &str) -> Vec<Vec<u8>> {
    let seen = RefCell::new(Vec::new());
    corpus(lines, |input| seen.borrow_mut().push(input.to_vec()));
    seen.into_inner()
}

#[test]
fn an_input_is_read_as_it_is_shown() {
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(run(&corpus_line(&all))[0], all);
    assert_eq!(run(r"a\x00\\é")[0], b"a\0\\\xc3\xa9");
}

#[test]
fn a_password_is_one_only_where_passwords_are() {
    for (url, is_one) in [
        ("redis://:hunter2@h", true),
        ("redis://ada:hunter2@h/?x=1", true),
        ("redis://h/:hunter2@", false),
        ("redis://hunter2@h", false),
        ("redis://:hunter2@hunter2", false),
        (":hunter2@h", false),
    ] {
        // Only of the line itself: a mutation may have a password where the line has none.
        let told = |input: &str| if input == url { url.to_owned() } else { String::new() };
        let shown = catch_unwind(AssertUnwindSafe(|| corpus_of_urls(url, told)));
        assert_eq!(shown.is_err(), is_one, "{url}");
    }
}

#[test]
fn a_fault_that_only_a_mutation_meets_is_found() {
    let test = |input: &[u8]| {
        if input.contains(&0xff) {
            resume_unwind(Box::new("found"));
        }
    };
    let found = catch_unwind(|| corpus("lease=10", test)).unwrap_err();
    assert_eq!(found.downcast_ref::<&str>(), Some(&"found"));
}
