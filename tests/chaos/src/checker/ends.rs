//! Guards that went on after their end, calls that never came to one, and writers that went on as readers.

use std::collections::{BTreeSet, HashMap};

use super::findings::Findings;
use super::ops::{At, Fault, Op};
use super::rules::{Rule, Terms};
use super::times::Hits;
use crate::history::{Mode, Target};

/// Finds guards that were held after their client had lost or detached them, and calls without an answer.
pub(super) fn check(ops: &[Op<'_>], hits: &Hits, findings: &mut Findings<'_>) {
    for op in ops {
        let (client, key) = (op.client, op.key);
        if let Some(at) = op.held_after_end {
            let ended = op.lost_or_detached().map(|at| at.line);
            let what = format!("client {client} held {key:?} after it had lost or detached it");
            findings.add(Rule::HeldAfterEnd, ended.into_iter().chain([at.line]).collect(), what);
        }
        if op.answered.is_none() && hits.killed(client).is_none() {
            let what = format!("client {client} asked for {key:?} and got no answer, although it went on");
            findings.add(Rule::Unresolved, vec![op.called.line], what);
        }
    }
}

/// Finds guards that were granted before a fault that takes locks away, and held longer than a lease after it: their renewal did
/// not tell that the lock was gone. A client that was stopped meanwhile had no renewal, and has no deadline either where there
/// are no leases.
pub(super) fn outlived(
    ops: &[Op<'_>],
    (faults, hits): (&[Fault<'_>], &Hits),
    terms: &Terms<'_>,
    findings: &mut Findings<'_>,
) {
    let takes_locks = |name| terms.allowances.iter().any(|allowed| allowed.takes_locks && allowed.fault == name);
    let taken: Vec<_> = faults.iter().filter(|fault| fault.proved && takes_locks(fault.name)).collect();
    for op in ops {
        let Some(grant) = op.grant else { continue };
        let outlived = |fault: &Fault<'_>| {
            let of_it = !matches!(fault.target, Target::Key(key) if key != op.key) && grant.at < fault.began;
            let late = op.held.iter().find(|held| held.at > fault.ended.saturating_add(grant.lease))?;
            (of_it && !hits.hit(op.client, fault.began.at, late.at)).then_some(*late)
        };
        if let Some((fault, held)) = taken.iter().find_map(|fault| Some((fault, outlived(fault)?))) {
            let (late, name) = ((held.at - fault.ended) / 1_000_000, fault.name);
            let what = format!("client {} held {:?} {late} ms after {name}", op.client, op.key);
            findings.add(Rule::Outlived, vec![grant.at.line, fault.began.line, held.line], what);
        }
    }
}

/// Finds downgrades in which another writer got a token between those of the writer and of the reader.
///
/// A downgrade is the one call that a task makes before a release of its own returns: a guard that is dropped has none.
pub(super) fn downgrades(ops: &[Op<'_>], findings: &mut Findings<'_>) {
    let token = |op: &Op<'_>| op.grant.map(|grant| grant.token);
    let writers = ops.iter().filter(|op| op.mode == Mode::Exclusive);
    let writers: BTreeSet<_> = writers.filter_map(|op| Some((op.key, token(op)?, op.client, op.called))).collect();
    let mut last = HashMap::new();
    for op in ops {
        let before = last.insert((op.client, op.task), op);
        let releases = |before: &&Op<'_>| {
            let called = before.release_called.is_some_and(|at| at < op.called);
            called && before.released.is_some_and(|at| at > op.called) && before.key == op.key
        };
        let Some(writer) = before.filter(|_| op.mode == Mode::Shared).filter(releases) else { continue };
        let (Some(from), Some(to)) = (token(writer), token(op)) else { continue };
        let next = writers.range((op.key, from.saturating_add(1), 0, At::default())..).next();
        let between = next.filter(|(key, token, ..)| *key == op.key && *token < to);
        if let Some((key, token, other, called)) = between {
            let what = format!(
                "client {} had {key:?} as a writer with token {from} and as a reader with {to}, and client {other} was a writer \
                 in between with {token}",
                op.client
            );
            findings.add(Rule::TornDowngrade, vec![writer.called.line, called.line, op.called.line], what);
        }
    }
}
