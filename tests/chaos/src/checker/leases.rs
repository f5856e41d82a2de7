//! The leases that clients saw: the levels of a session are one lease, and what is attached keeps the token of its origin.

use super::findings::{Findings, Scene};
use super::ops::{At, Op};
use super::terms::Rule;
use super::work::Work;
use crate::history::Mode;

/// A grant, with all levels that joined it.
#[derive(Clone, Debug)]
pub(super) struct Lease<'h> {
    pub(super) client: u32,
    pub(super) key: &'h str,
    pub(super) mode: Mode,
    pub(super) token: u64,
    pub(super) ttl_ms: u64,
    pub(super) attach: bool,
    pub(super) called: At,
    pub(super) granted: At,
    /// The last moment at which it was known to be held: the window of the lease is from `granted` to here.
    pub(super) held: Option<At>,
    pub(super) detached: Option<At>,
    /// All its levels are released or detached.
    pub(super) over: Option<At>,
    /// The lease that the store granted: this one, or the one that was detached and attached.
    pub(super) origin: usize,
    /// The client did this with it, by index of the op.
    pub(super) ops: Vec<usize>,
}

impl Lease<'_> {
    pub(super) fn window(&self) -> Option<(u64, u64)> {
        self.held.map(|held| (self.granted.at, held.at)).filter(|(start, end)| start < end)
    }

    /// How long it lasts at most without a renewal.
    pub(super) fn nanos(&self) -> u64 {
        self.ttl_ms.saturating_mul(1_000_000)
    }

    /// The first moment at which the store can have granted it: an older lease would have ended before its client had it.
    pub(super) fn granted_after(&self) -> u64 {
        self.called.at.max(self.granted.at.saturating_sub(self.nanos()))
    }

    /// The lines that show its window.
    pub(super) fn lines(&self) -> impl Iterator<Item = usize> + use<> {
        [Some(self.called), Some(self.granted), self.held].into_iter().flatten().map(|at| at.line)
    }
}

/// All leases, sorted by key and call. Leases of one token have an origin each, or it is a finding.
///
/// A session may join a lease that it has given back, as long as that can stand in the store and nobody else was granted the
/// key: a level that was dropped is released later, and one whose call was given up, or sent twice, may have been counted.
pub(super) fn leases<'h>(ops: &[Op<'h>], findings: &mut Findings<'_>, work: &Work) -> Vec<Lease<'h>> {
    let mut granted: Vec<usize> = (0..ops.len()).filter(|op| ops[*op].grant.is_some()).collect();
    let token = |op: &Op<'_>| op.grant.map(|grant| grant.token);
    work.sort(&mut granted, |op| {
        let op = &ops[*op];
        (op.client, op.session, op.key, op.mode as u8, token(op), op.called)
    });
    let grants = Grants::of(ops, work);
    let mut leases: Vec<Lease<'h>> = Vec::new();
    for number in granted {
        let lease = leases.last_mut().filter(|last| {
            let (op, first) = (&ops[number], &ops[last.ops[0]]);
            let same = (op.client, op.session, op.key, op.mode, token(op))
                == (last.client, first.session, last.key, last.mode, Some(last.token));
            work.count();
            same && op.session.is_some()
                && last.over.is_none_or(|over| op.called.at < over.at.saturating_add(last.nanos()))
                && grants.newest_before(op.key, op.called, work).is_none_or(|newest| newest <= last.token)
        });
        match (lease, single(ops, number)) {
            (Some(lease), Some(level)) => join(lease, level),
            (None, Some(alone)) => leases.push(alone),
            (_, None) => {}
        }
    }
    for lease in &leases {
        lost_by_a_part(lease, ops, findings, work);
    }
    work.sort(&mut leases, |lease| (lease.key, lease.called));
    origins(&mut leases, findings, work);
    leases
}

/// All grants, by key and moment.
struct Grants<'o>(Vec<(&'o str, At, u64)>);

impl<'o> Grants<'o> {
    fn of(ops: &'o [Op<'_>], work: &Work) -> Self {
        let granted = ops.iter().filter_map(|op| op.grant.map(|grant| (op.key, grant.at, grant.token)));
        let mut grants: Vec<_> = granted.collect();
        work.sort(&mut grants, |grant| *grant);
        Self(grants)
    }

    /// The token of the newest grant of a key before a moment.
    fn newest_before(&self, key: &str, at: At, work: &Work) -> Option<u64> {
        let place = work.count_before(&self.0, |(other, granted, _)| (*other, *granted) < (key, at));
        self.0.get(place.checked_sub(1)?).filter(|(other, ..)| *other == key).map(|(.., token)| *token)
    }
}

fn single<'h>(ops: &[Op<'h>], number: usize) -> Option<Lease<'h>> {
    let op = &ops[number];
    let grant = op.grant?;
    Some(Lease {
        client: op.client,
        key: op.key,
        mode: op.mode,
        token: grant.token,
        ttl_ms: grant.lease_ms,
        attach: op.attach,
        called: op.called,
        granted: grant.at,
        held: op.held,
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
    lease.ttl_ms = lease.ttl_ms.max(level.ttl_ms);
    // Open as long as one of them is.
    lease.over = lease.over.and_then(|over| level.over.map(|other| over.max(other)));
    lease.ops.extend(level.ops);
}

/// Finds levels that were held, or joined the lease, after another level had lost it.
fn lost_by_a_part(lease: &Lease<'_>, ops: &[Op<'_>], findings: &mut Findings<'_>, work: &Work) {
    let lost = lease.ops.iter().filter_map(|op| {
        work.count();
        ops[*op].lost_for_all
    });
    let Some(lost) = lost.min() else { return };
    for op in lease.ops.iter().map(|op| &ops[*op]).filter(|op| op.held_after_end.is_none()) {
        work.count();
        let joined = op.grant.map(|grant| grant.at).filter(|_| op.called > lost);
        let held = op.held.filter(|held| *held > lost);
        if let Some(at) = joined.or(held) {
            let did = if joined.is_some() { "joined" } else { "held" };
            let what =
                format!("a session of client {} {did} {:?} after it had lost it on another level", op.client, op.key);
            findings.add(Rule::HeldAfterEnd, vec![lost.line, at.line], what);
        }
    }
}

/// Finds where each token comes from: a text can be attached once.
fn origins(leases: &mut [Lease<'_>], findings: &mut Findings<'_>, work: &Work) {
    let mut by_token: Vec<usize> = (0..leases.len()).collect();
    work.sort(&mut by_token, |lease| (leases[*lease].key, leases[*lease].token, leases[*lease].granted));
    let mut same_token: &[usize] = &by_token;
    while let Some(&first) = same_token.first() {
        let same =
            |other: &usize| (leases[*other].key, leases[*other].token) == (leases[first].key, leases[first].token);
        let (group, rest) = same_token.split_at(work.count_before(same_token, same));
        same_token = rest;
        let mut detached: Vec<At> = group.iter().filter_map(|lease| leases[*lease].detached).collect();
        work.sort(&mut detached, |at| *at);
        let mut texts = detached.into_iter().peekable();
        for (position, &lease) in group.iter().enumerate() {
            leases[lease].origin = first;
            let there = leases[lease].attach && texts.next_if(|text| *text < leases[lease].granted).is_some();
            if !there && (position > 0 || leases[lease].attach) {
                duplicate(leases, group[position.saturating_sub(1)], lease, findings);
                leases[lease].origin = lease;
            }
        }
    }
}

fn duplicate(leases: &[Lease<'_>], one: usize, other: usize, findings: &mut Findings<'_>) {
    let (one, other) = (&leases[one], &leases[other]);
    let what = if other.attach {
        format!("client {} attached {:?} with token {}, of which no text is left", other.client, other.key, other.token)
    } else {
        format!("clients {} and {} were granted {:?} with token {}", one.client, other.client, other.key, other.token)
    };
    let clients = [one.client, other.client];
    let from = one.called.at.min(other.called.at);
    let scene = Scene { from, to: other.granted.at, lease: one.nanos(), key: other.key, clients: &clients };
    let rule = if other.attach { Rule::StaleAttach } else { Rule::DuplicateToken };
    findings.add_at(rule, &scene, one.lines().chain(other.lines()).collect(), what);
}
