//! Polled by an executor that is not tokio: what a guard and a locker can do still works.

use std::future::ready;

use futures::executor::block_on;
use futures::future::{Either, select};
use leasehold_core::{LockerExt, ReleaseOutcome};
use leasehold_testkit::{Fault, Op, test};

use crate::surroundings::{MOMENT, ends, live, store};

#[test]
fn guards_are_renewed_released_and_asked_for_their_loss_outside_of_tokio() {
    let (store, live) = (store(), live());
    // What a driver does: it sleeps, which only works where a runtime is.
    store.faults.always(Op::Release, Fault::Slow(MOMENT / 50));
    store.faults.always(Op::Renew, Fault::Slow(MOMENT / 50));
    let locks = store.engine();
    let guard = live.block_on(locks.lock("k")).unwrap();
    let outcome = ends("what is polled outside of tokio", move || {
        block_on(guard.renew()).unwrap();
        let lost = std::pin::pin!(guard.lost());
        let either = block_on(select(lost, ready(())));
        assert!(matches!(either, Either::Right(_)), "a guard that is held says that it is lost");
        block_on(guard.release()).unwrap()
    });
    assert_eq!(outcome, ReleaseOutcome::Released);
    assert!(live.block_on(store.engine().try_lock("k")).unwrap().is_some());
}

#[test]
fn a_locker_is_closed_and_its_holder_is_told_outside_of_tokio() {
    let (store, live) = (store(), live());
    store.faults.always(Op::Release, Fault::Slow(MOMENT / 50));
    let locks = store.engine();
    let guard = live.block_on(locks.lock("k")).unwrap();
    let lost = guard.lost();
    let told = std::thread::spawn(move || block_on(lost));
    ends("closing outside of tokio", move || block_on(locks.close()));
    ends("nobody is told", move || told.join().unwrap());
    assert!(live.block_on(store.engine().try_lock("k")).unwrap().is_some());
}
