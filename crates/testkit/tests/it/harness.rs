//! How a test ends.

use std::panic::{catch_unwind, resume_unwind};

use leasehold_core::conformance::Expected;
use leasehold_testkit::{completion, needs, shows_nothing, test};
use libtest_mimic::{Completion, Failed};

const BROKEN: Expected = Expected { finding: "X1", places: "here", test: "one", reason: "it is broken" };

fn ignored(ended: &Result<Completion, Failed>) -> bool {
    matches!(ended, Ok(Completion::Ignored { .. }))
}

#[test]
fn what_is_absent_makes_a_test_ignored_unless_it_is_required() {
    let body = || -> Result<(), String> { needs("oracle", None) };
    assert!(ignored(&completion(Box::new(body), false, None)));
    let failed = completion(Box::new(body), true, None).err().expect("it is required");
    assert!(failed.message().is_some_and(|why| why.contains("no oracle here")), "{failed:?}");
    // Absence is no failure that was expected.
    assert!(completion(Box::new(body), true, Some(&BROKEN)).is_err());
}

#[test]
fn a_test_that_shows_nothing_is_ignored_also_where_everything_is_required() {
    let slow = || -> Result<(), String> { shows_nothing("the machine made only 999 grants a second") };
    for expected in [None, Some(&BROKEN)] {
        let ended = completion(Box::new(slow), true, expected);
        let Ok(Completion::Ignored { reason }) = ended else { panic!("it is not ignored") };
        assert_eq!(reason.as_deref(), Some("the machine made only 999 grants a second"));
    }
}

#[test]
fn an_expected_failure_may_be_an_error_or_a_panic_and_nothing_else() {
    assert!(ignored(&completion(Box::new(|| Err("broken".into())), true, Some(&BROKEN))));
    assert!(ignored(&completion(Box::new(|| resume_unwind(Box::new("broken"))), true, Some(&BROKEN))));
    let passes = completion(Box::new(|| Ok(())), true, Some(&BROKEN)).err().expect("it passes");
    assert!(passes.message().is_some_and(|why| why.contains("take it off the list")), "{passes:?}");
}

#[test]
fn a_test_passes_or_fails_by_itself() {
    assert!(matches!(completion(Box::new(|| Ok(())), true, None), Ok(Completion::Completed)));
    assert!(completion(Box::new(|| Err("broken".into())), false, None).is_err());
    assert!(catch_unwind(|| completion(Box::new(|| resume_unwind(Box::new("broken"))), false, None)).is_err());
}
