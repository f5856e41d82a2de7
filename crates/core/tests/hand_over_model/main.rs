//! Every behaviour of the hand-over inside a process, searched breadth first.
//!
//! The adversary executes any request at any later time, loses any answer, cancels any waiter, ends any guard at any
//! moment, and once lets the store lose the lock. With all rules nothing is broken; each rule that is left out breaks
//! what it is there for. `hand_over.rs` has the same rules on the engine itself.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and tells its figures")]

mod exclusive;
mod search;

use exclusive::{Property, Rule, State};
use search::search;

#[test]
fn all_rules_together_hold() {
    let start = std::time::Instant::now();
    let found = search::<State>(None);
    println!("{} states, {:?} {:#?}", found.states, start.elapsed(), found.seen);
    if let Some((p, t)) = found.broken { panic!("{p:?}: {t}"); }
}
#[test]
fn each() {
    for rule in [Rule::NewNumber, Rule::NoWrap, Rule::OwnGrantOnly, Rule::Minimum, Rule::NoDoubt, Rule::LossFirst, Rule::WantedOnly, Rule::NewOwner, Rule::Rest, Rule::SkipGone, Rule::RemainingLease] {
        let start = std::time::Instant::now();
        let found = search::<State>(Some(rule));
        println!("{rule:?} {} states {:?} {:?}", found.states, start.elapsed(), found.broken.as_ref().map(|(p, t)| (p, t.lines().count())));
 if matches!(rule, _ if false) { println!("{}", found.broken.unwrap().1) }
    }
}
