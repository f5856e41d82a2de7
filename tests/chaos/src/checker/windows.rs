//! No two clients hold a key at the same time, unless both hold it shared.

use std::collections::BinaryHeap;

use super::findings::{Findings, seconds};
use super::leases::{Lease, clash};
use super::rules::Rule;
use crate::history::Mode;

/// When a lease was known to be held.
type Window<'l> = (u64, u64, &'l Lease<'l>);

/// Finds windows that begin within another one.
pub(super) fn check(leases: &[Lease<'_>], start: u64, findings: &mut Findings<'_>) {
    let windows = leases.iter().filter_map(|lease| lease.window().map(|(from, to)| (from, to, lease)));
    let mut windows: Vec<Window<'_>> = windows.collect();
    windows.sort_by_key(|(from, _, lease)| (lease.key, *from));
    for windows in windows.chunk_by(|one, other| one.2.key == other.2.key) {
        let (mut writers, mut readers) = (Open::default(), Open::default());
        for (position, later) in windows.iter().enumerate() {
            let (from, _, lease) = later;
            let writer = writers.at(*from, windows);
            let reader = readers.at(*from, windows).filter(|_| lease.mode == Mode::Exclusive);
            for earlier in [writer, reader].into_iter().flatten() {
                overlap(earlier, later, start, findings);
            }
            let open = if lease.mode == Mode::Exclusive { &mut writers } else { &mut readers };
            open.0.push((lease.called.at, position));
        }
    }
}

/// Windows that have begun, by the moment of their call.
#[derive(Default)]
struct Open(BinaryHeap<(u64, usize)>);

impl Open {
    /// Of those that are open at a moment, the one that was called last: between its call and this moment, the fewest faults
    /// can have been on.
    fn at<'w, 'l>(&mut self, moment: u64, windows: &'w [Window<'l>]) -> Option<&'w Window<'l>> {
        while let Some((_, position)) = self.0.peek() {
            let window = &windows[*position];
            if window.1 > moment {
                return Some(window);
            }
            // Moments only grow: it is over for all that follow.
            self.0.pop();
        }
        None
    }
}

fn overlap(earlier: &Window<'_>, later: &Window<'_>, start: u64, findings: &mut Findings<'_>) {
    let window = |(from, to, lease): &Window<'_>| {
        let (from, to) = (seconds(start, *from), seconds(start, *to));
        let word = if lease.mode == Mode::Exclusive { "exclusive" } else { "shared" };
        format!("client {} ({word}, token {}) from {from} to {to}", lease.client, lease.token)
    };
    let what = format!("{:?} was held by {}, and by {}", later.2.key, window(earlier), window(later));
    let same = earlier.2.mode == later.2.mode;
    let rule = if same { Rule::Overlap } else { Rule::ReaderBesideWriter };
    clash([earlier.2, later.2], (rule, earlier.2.granted_after()), what, findings);
}
