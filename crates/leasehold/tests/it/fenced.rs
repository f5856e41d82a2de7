//! What is written under a lock.

use leasehold::fenced::{Outcome, SqlWrite};
use leasehold::{ErrorKind, FencingToken};
use leasehold_testkit::test;

#[test]
fn the_statements_of_postgres_have_numbers() {
    let write = SqlWrite::postgres("shop.account", "id", "fence", &["balance", "owner"]).unwrap();
    let update = "UPDATE shop.account SET balance = $1, owner = $2, fence = $3 WHERE id = $4 AND fence <= $5";
    assert_eq!(write.update(), update);
    assert_eq!(write.seen(), "SELECT fence FROM shop.account WHERE id = $1 FOR UPDATE");
}

#[test]
fn what_is_no_plain_name_is_refused() {
    let make = |table, key, fence, columns: &[&str]| SqlWrite::mysql(table, key, fence, columns);
    assert!(make("account", "id", "fence", &["balance"]).is_ok());
    for bad in ["", "a b", "a;b", "1a", "a.b", "a`", "a\"", "é"] {
        for made in [make("t", bad, "f", &["c"]), make("t", "k", bad, &["c"]), make("t", "k", "f", &["c", bad])] {
            assert_eq!(made.unwrap_err().kind(), ErrorKind::InvalidOptions, "{bad}");
        }
    }
    for bad in ["", ".", "a.", ".a", "a.b.c", "a b"] {
        assert!(make(bad, "k", "f", &["c"]).is_err(), "{bad}");
    }
    assert!(make("t", "k", "f", &[]).is_err());
}

#[test]
fn no_row_is_stale_missing_or_unchanged() {
    let token = FencingToken::from(7);
    let outcome = |rows, seen| SqlWrite::outcome(token, rows, seen);
    assert_eq!(outcome(1, None), Some(Outcome::Written));
    assert_eq!(outcome(0, None), None);
    assert_eq!(outcome(0, Some(7)), Some(Outcome::Written));
    assert_eq!([outcome(0, Some(0)), outcome(0, Some(6))], [None; 2], "made since, and not written to");
    assert_eq!(outcome(0, Some(8)), Some(Outcome::Stale { seen: 8.into() }));
}
