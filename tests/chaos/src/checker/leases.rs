//! The leases that clients saw: the levels of a session are one lease, and what is attached keeps the token of its origin.

use super::findings::{Findings, Scene};
use super::ops::{At, Op};
use super::rules::Rule;
use crate::history::Mode;

/// A grant, with all levels that joined it.
#[derive(Clone, Debug)]
pub(super) struct Lease<'h> {
    pub(super) client: u32,
    pub(super) key: &'h str,
    pub(super) mode: Mode,
    pub(super) token: u64,
    /// How long it lasts at most without a renewal, in nanoseconds.
    pub(super) length: u64,
    pub(super) attach: bool,
    pub(super) called: At,
    pub(super) granted: At,
    /// The last moment at which it was known to be held: the window of the lease is from `granted` to here.
    pub(super) held: Option<At>,
    detached: Option<At>,
    /// All its levels are released or detached.
    over: Option<At>,
    /// The lease that the store granted: this one, or the one that was detached and attached.
    pub(super) origin: usize,
    /// The client did this with it, by index of the op.
    pub(super) ops: Vec<usize>,
}

impl Lease<'_> {
    pub(super) fn window(&self) -> Option<(u64, u64)> {
        self.held.map(|held| (self.granted.at, held.at)).filter(|(start, end)| start < end)
    }

    /// The first moment at which the store can have granted it: an older lease would have ended before its client had it.
    pub(super) fn granted_after(&self) -> u64 {
        self.called.at.max(self.granted.at.saturating_sub(self.length))
    }

    /// The lines that show its window.
    pub(super) fn lines(&self) -> impl Iterator<Item = usize> + use<> {
        [Some(self.called), Some(self.granted), self.held].into_iter().flatten().map(|at| at.line)
    }
}

/// Adds what is wrong with two leases, unless a fault since this moment excuses it.
pub(super) fn clash(
    [one, other]: [&Lease<'_>; 2],
    (rule, from): (Rule, u64),
    what: String,
    findings: &mut Findings<'_>,
) {
    let (to, clients) = (other.granted.at, [one.client, other.client]);
    let scene = Scene { from, to, lease: one.length, key: other.key, clients };
    findings.add_at(rule, &scene, one.lines().chain(other.lines()).collect(), what);
}

/// All leases, sorted by key and call. Leases of one token have an origin each, or it is a finding.
///
/// A session may join a lease that it has given back, as long as that can stand in the store and nobody else was granted the
/// key: a level that was dropped is released later, and one whose call was given up, or sent twice, may have been counted.
pub(super) fn leases<'h>(ops: &[Op<'h>], findings: &mut Findings<'_>) -> Vec<Lease<'h>> {
    let of = |op: &Op<'h>| (op.client, op.session, op.key, op.mode as u8, op.grant.map(|grant| grant.token));
    let mut levels: Vec<Lease<'h>> = ops.iter().enumerate().filter_map(|(number, op)| single(op, number)).collect();
    levels.sort_by_key(|level| (of(&ops[level.ops[0]]), level.called));
    let mut all: Vec<_> = levels.iter().map(|level| (level.key, level.granted, level.token)).collect();
    all.sort_unstable();
    let newest_before = |op: &Op<'_>| {
        let place = all.partition_point(|(key, at, _)| (*key, *at) < (op.key, op.called));
        all[..place].last().filter(|(key, ..)| *key == op.key).map(|(.., token)| *token)
    };
    let mut leases: Vec<Lease<'h>> = Vec::new();
    for level in levels {
        let op = &ops[level.ops[0]];
        let lease = leases.last_mut().filter(|last| {
            op.session.is_some()
                && of(op) == of(&ops[last.ops[0]])
                && last.over.is_none_or(|over| op.called.at < over.at.saturating_add(last.length))
                && newest_before(op).is_none_or(|newest| newest <= last.token)
        });
        match lease {
            Some(lease) => join(lease, level),
            None => leases.push(level),
        }
    }
    for lease in &leases {
        lost_by_a_part(lease, ops, findings);
    }
    leases.sort_by_key(|lease| (lease.key, lease.called));
    origins(&mut leases, findings);
    leases
}

fn single<'h>(op: &Op<'h>, number: usize) -> Option<Lease<'h>> {
    let grant = op.grant?;
    Some(Lease {
        client: op.client,
        key: op.key,
        mode: op.mode,
        token: grant.token,
        length: grant.lease,
        attach: op.attach,
        called: op.called,
        granted: grant.at,
        held: op.last_held(),
        detached: op.detached,
        over: op.over(),
        origin: 0,
        ops: vec![number],
    })
}

fn join(lease: &mut Lease<'_>, level: Lease<'_>) {
    lease.granted = lease.granted.min(level.granted);
    lease.held = lease.held.max(level.held);
    lease.detached = lease.detached.or(level.detached);
    lease.length = lease.length.max(level.length);
    // Open as long as one of them is.
    lease.over = lease.over.and_then(|over| level.over.map(|other| over.max(other)));
    lease.ops.extend(level.ops);
}

/// Finds levels that were held, or joined the lease, after another level had lost it.
fn lost_by_a_part(lease: &Lease<'_>, ops: &[Op<'_>], findings: &mut Findings<'_>) {
    let Some(lost) = lease.ops.iter().filter_map(|op| ops[*op].lost_for_all).min() else { return };
    for op in lease.ops.iter().map(|op| &ops[*op]).filter(|op| op.held_after_end.is_none()) {
        let joined = op.grant.map(|grant| grant.at).filter(|_| op.called > lost);
        let held = op.last_held().filter(|held| *held > lost);
        if let Some(at) = joined.or(held) {
            let did = if joined.is_some() { "joined" } else { "held" };
            let what =
                format!("a session of client {} {did} {:?} after it had lost it on another level", op.client, op.key);
            findings.add(Rule::HeldAfterEnd, vec![lost.line, at.line], what);
        }
    }
}

/// Finds where each token comes from: a text can be attached once.
fn origins(leases: &mut [Lease<'_>], findings: &mut Findings<'_>) {
    let mut by_token: Vec<usize> = (0..leases.len()).collect();
    by_token.sort_by_key(|lease| (leases[*lease].key, leases[*lease].token, leases[*lease].granted));
    let of: Vec<_> = leases.iter().map(|lease| (lease.key, lease.token)).collect();
    for group in by_token.chunk_by(|one, other| of[*one] == of[*other]) {
        let mut texts: Vec<At> = group.iter().filter_map(|lease| leases[*lease].detached).collect();
        texts.sort_unstable();
        let mut texts = texts.into_iter().peekable();
        for (position, &lease) in group.iter().enumerate() {
            leases[lease].origin = group[0];
            let there = leases[lease].attach && texts.next_if(|text| *text < leases[lease].granted).is_some();
            if !there && (position > 0 || leases[lease].attach) {
                duplicate([&leases[group[position.saturating_sub(1)]], &leases[lease]], findings);
                leases[lease].origin = lease;
            }
        }
    }
}

fn duplicate([one, other]: [&Lease<'_>; 2], findings: &mut Findings<'_>) {
    let (client, key, token) = (other.client, other.key, other.token);
    let (rule, what) = if other.attach {
        let what = format!("client {client} attached {key:?} with token {token}, of which no text is left");
        (Rule::StaleAttach, what)
    } else {
        let what = format!("clients {} and {client} were granted {key:?} with token {token}", one.client);
        (Rule::DuplicateToken, what)
    };
    clash([one, other], (rule, one.called.at.min(other.called.at)), what, findings);
}
