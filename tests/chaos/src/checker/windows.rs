//! No two clients hold a key at the same time, unless both hold it shared.

use std::collections::BinaryHeap;

use super::findings::{Findings, Scene, seconds};
use super::leases::Lease;
use super::terms::Rule;
use super::work::Work;
use crate::history::Mode;

/// Finds windows that begin within another one.
pub(super) fn check(leases: &[Lease<'_>], start: u64, findings: &mut Findings<'_>, work: &Work) {
    let mut windows: Vec<(u64, u64, &Lease<'_>)> =
        leases.iter().filter_map(|lease| lease.window().map(|(from, to)| (from, to, lease))).collect();
    work.sort(&mut windows, |(from, _, lease)| (lease.key, *from));
    for windows in windows.chunk_by(|one, other| {
        work.count();
        one.2.key == other.2.key
    }) {
        let (mut writers, mut readers) = (Open::default(), Open::default());
        for (position, (from, to, lease)) in windows.iter().enumerate() {
            let writer = writers.at(*from, windows, work);
            let reader = readers.at(*from, windows, work).filter(|_| lease.mode == Mode::Exclusive);
            for (_, end, earlier) in [writer, reader].into_iter().flatten() {
                overlap(earlier, *end, lease, *to, start, findings);
            }
            let open = if lease.mode == Mode::Exclusive { &mut writers } else { &mut readers };
            open.add(lease.called.at, position, work);
        }
    }
}

/// Windows that have begun, by the moment of their call.
#[derive(Default)]
struct Open(BinaryHeap<(u64, usize)>);

impl Open {
    /// Of those that are open at a moment, the one that was called last: between its call and this moment, the fewest faults
    /// can have been on.
    fn at<'w, 'l>(
        &mut self,
        moment: u64,
        windows: &'w [(u64, u64, &'l Lease<'l>)],
        work: &Work,
    ) -> Option<&'w (u64, u64, &'l Lease<'l>)> {
        while let Some((_, position)) = self.0.peek() {
            work.count();
            let window = &windows[*position];
            if window.1 > moment {
                return Some(window);
            }
            // Moments only grow: it is over for all that follow.
            self.count(work);
            self.0.pop();
        }
        None
    }

    fn add(&mut self, called: u64, position: usize, work: &Work) {
        self.count(work);
        self.0.push((called, position));
    }

    /// A step of the heap.
    fn count(&self, work: &Work) {
        for _ in 0..=self.0.len().checked_ilog2().unwrap_or_default() {
            work.count();
        }
    }
}

fn overlap(earlier: &Lease<'_>, ended: u64, later: &Lease<'_>, end: u64, start: u64, findings: &mut Findings<'_>) {
    let both = earlier.mode == later.mode;
    let rule = if both { Rule::Overlap } else { Rule::ReaderBesideWriter };
    let word = |mode| if mode == Mode::Exclusive { "exclusive" } else { "shared" };
    let window = |lease: &Lease<'_>, to| {
        let (from, to) = (seconds(start, lease.granted.at), seconds(start, to));
        format!("client {} ({}, token {}) from {from} to {to}", lease.client, word(lease.mode), lease.token)
    };
    let what = format!("{:?} was held by {}, and by {}", later.key, window(earlier, ended), window(later, end));
    let clients = [earlier.client, later.client];
    let (from, to) = (earlier.granted_after(), later.granted.at);
    let scene = Scene { from, to, lease: earlier.nanos(), key: later.key, clients: &clients };
    findings.add_at(rule, &scene, earlier.lines().chain(later.lines()).collect(), what);
}
