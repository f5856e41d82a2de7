//! What registers took that they must not take, and what was lost.

use leasehold_chaos::checker::Rule;
use leasehold_testkit::test;

use crate::judge::differ;

#[test]
fn a_register_that_takes_a_smaller_token_is_found() {
    differ(
        &[Rule::StaleWrite, Rule::NotLinearizable],
        "c1 10 call k
         c1 20 granted 7
         c2 30 call k
         c2 40 granted 8
         c2 50 write r 1 token=8
         c2 60 wrote none
         c1 70 write r 2 token=7
        -c1 80 fenced
        +c1 80 wrote 1",
    );
}

#[test]
fn a_write_of_an_earlier_holder_is_found_although_its_token_is_not_smaller() {
    differ(
        &[Rule::DuplicateToken, Rule::StaleWrite],
        "c1 10 call k
         c1 20 granted 7
         c2 30 call k
        -c2 40 granted 8
        +c2 40 granted 7
        -c2 50 write r 1 token=8
        +c2 50 write r 1 token=7
         c2 60 wrote none
         c1 70 write r 2 token=7
        -c1 80 fenced
        +c1 80 wrote 1",
    );
}

#[test]
fn an_update_that_was_lost_is_found_with_tokens_and_without() {
    for (token, rule) in [(" token=7", Rule::LostUpdate), ("", Rule::UnfencedLoss)] {
        let story = "c1 10 call k
                     c1 20 granted 7
                     c2 25 call elsewhere
                     c2 30 granted 8
                     c1 40 read rTOKEN
                     c1 45 saw noneFENCE
                    +c2 50 write r 1
                    +c2 55 wrote none
                     c1 60 write r 2TOKEN
                    -c1 65 wrote none
                    +c1 65 wrote 1";
        let fence = if token.is_empty() { "" } else { " fence=7" };
        differ(&[rule], &story.replace("TOKEN", token).replace("FENCE", fence));
    }
}

#[test]
fn a_read_of_what_was_overwritten_before_is_found() {
    differ(
        &[Rule::NotLinearizable],
        "c1 10 call k
         c1 20 granted 7
         c1 30 write r 1 token=7
         c1 40 wrote none
         c1 50 write r 2 token=7
        -c1 70 wrote 1
        +c1 55 wrote 1
         c2 10 call other
         c2 15 granted 3
         c2 60 read r
         c2 65 saw 1 fence=7",
    );
}

#[test]
fn what_was_never_answered_may_be_written_late_but_not_taken_back() {
    differ(
        &[Rule::NotLinearizable],
        "c1 10 call k
         c1 20 granted 7
         c1 30 write r 1
         c1 40 dark
         c2 10 call other
         c2 15 granted 3
         c2 50 read r
         c2 60 saw none
         c2 70 read r
         c2 80 saw 1
         c2 90 read r
        -c2 99 saw 1
        +c2 99 saw none",
    );
}

#[test]
fn a_request_without_an_answer_is_refused_once_a_larger_token_was_taken() {
    differ(
        &[Rule::NotLinearizable],
        "c1 10 call k
         c1 20 granted 7
         c1 30 write r 1 token=7
         c1 40 dark
         c2 10 call other
         c2 15 granted 3
         c2 50 write r 2 token=8
         c2 60 wrote none
         c2 70 read r
        -c2 80 saw 2 fence=8
        +c2 80 saw 1 fence=8",
    );
}
