//! The requests to registers: no stale write is accepted, and no update is lost.

use super::findings::{Findings, Scene};
use super::leases::Lease;
use super::ops::{At, Op, Request};
use super::rules::Rule;
use crate::history::Mode;
use crate::register::Answer;

/// A request of a client, and the lease under which it was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent<'h> {
    client: u32,
    request: Request<'h>,
    lease: Option<usize>,
}

/// All requests, sorted by register and call.
pub(super) fn sent<'h>(ops: &[Op<'h>], leases: &[Lease<'h>]) -> Vec<Sent<'h>> {
    let mut lease_of: Vec<Option<usize>> = vec![None; ops.len()];
    for (lease, its) in leases.iter().enumerate() {
        for op in &its.ops {
            lease_of[*op] = Some(lease);
        }
    }
    let requests = ops.iter().zip(lease_of).flat_map(|(op, lease)| op.requests.iter().map(move |one| (op, lease, one)));
    let sent = requests.map(|(op, lease, request)| Sent { client: op.client, request: *request, lease });
    let mut sent: Vec<Sent<'h>> = sent.collect();
    sent.sort_by_key(|sent| (sent.request.register, sent.request.called));
    sent
}

impl<'h> Sent<'h> {
    fn wrote(&self) -> (&'h str, Option<u64>) {
        (self.request.register, self.request.writes)
    }

    /// When the register took it, if it did and a token went with it.
    fn accepted(&self) -> Option<At> {
        self.request.token?;
        let (at, answer) = self.request.answer?;
        matches!(answer, Answer::Wrote { .. } | Answer::Read { .. }).then_some(at)
    }

    /// The lease of a writer that its token comes from.
    fn origin<'l>(&self, leases: &'l [Lease<'h>]) -> Option<&'l Lease<'h>> {
        let lease = &leases[self.lease?];
        (lease.mode == Mode::Exclusive).then(|| &leases[lease.origin])
    }
}

/// Finds requests that a register accepted after one of a later holder. The requests are sorted by register and call.
pub(super) fn stale(sent: &[Sent<'_>], leases: &[Lease<'_>], findings: &mut Findings<'_>) {
    let holder_called = |sent: &Sent<'_>| sent.origin(leases).map(|lease| lease.called);
    for called in sent.chunk_by(|one, other| one.request.register == other.request.register) {
        let mut returned: Vec<&Sent<'_>> = called.iter().filter(|sent| sent.accepted().is_some()).collect();
        returned.sort_by_key(|sent| sent.accepted());
        let mut returned = returned.into_iter().peekable();
        let (mut largest, mut latest): (Option<&Sent<'_>>, Option<&Sent<'_>>) = (None, None);
        for sent in called.iter().filter(|sent| sent.accepted().is_some()) {
            let before_it = |before: &&Sent<'_>| before.accepted().is_some_and(|at| at.at < sent.request.called.at);
            while let Some(before) = returned.next_if(before_it) {
                let token = before.request.token;
                largest = Some(largest.filter(|largest| largest.request.token >= token).unwrap_or(before));
                latest = Some(latest.filter(|latest| holder_called(latest) >= holder_called(before)).unwrap_or(before));
            }
            let smaller = largest.filter(|largest| largest.request.token > sent.request.token);
            let granted = sent.origin(leases).map(|lease| lease.granted.at);
            let after_a_later_holder = |latest: &&Sent<'_>| {
                granted.is_some_and(|granted| holder_called(latest).is_some_and(|called| called.at > granted))
            };
            if let Some(before) = smaller.or(latest.filter(after_a_later_holder)) {
                accepted_late([before, sent], leases, findings);
            }
        }
    }
}

fn accepted_late([before, late]: [&Sent<'_>; 2], leases: &[Lease<'_>], findings: &mut Findings<'_>) {
    let token = |sent: &Sent<'_>| sent.request.token.unwrap_or_default();
    let what = format!(
        "register {:?} took a request of client {} with token {}, although client {}, which got its lock later or has a \
         larger token ({}), had been served before",
        late.request.register,
        late.client,
        token(late),
        before.client,
        token(before)
    );
    let leases = [before, late].map(|sent| sent.lease.map(|lease| &leases[lease]));
    let requests = [before, late].into_iter().flat_map(|sent| [Some(sent.request.called), sent.accepted()]);
    let lines = leases.into_iter().flatten().flat_map(Lease::lines).chain(requests.flatten().map(|at| at.line));
    let scene = Scene {
        from: leases.into_iter().flatten().map(|lease| lease.called.at).min().unwrap_or_default(),
        to: late.accepted().map_or(0, |at| at.at),
        lease: leases.into_iter().flatten().map(|lease| lease.length).max().unwrap_or_default(),
        key: leases[1].map_or("", |lease| lease.key),
        clients: [before.client, late.client],
    };
    findings.add_at(Rule::StaleWrite, &scene, lines.collect(), what);
}

/// Finds writes that replaced another value than the one which their op had read. What an op wrote without an answer may come
/// later than it thinks: of that register, it is judged no further.
pub(super) fn lost_updates(ops: &[Op<'_>], sent: &[Sent<'_>], leases: &[Lease<'_>], findings: &mut Findings<'_>) {
    let mut writers: Vec<&Sent<'_>> = sent.iter().filter(|sent| sent.request.writes.is_some()).collect();
    writers.sort_by_key(|sent| sent.wrote());
    for op in ops {
        // What the register had when this op looked last.
        let mut known: Option<(&Request<'_>, Option<u64>)> = None;
        for request in &op.requests {
            let before = known.take().filter(|(read, _)| read.register == request.register);
            match request.answer {
                Some((_, Answer::Read { value })) => known = Some((request, value)),
                Some((at, Answer::Wrote { previous })) => {
                    if let Some((read, _)) = before.filter(|(_, value)| *value != previous) {
                        let lost = (request.register, previous);
                        let other = writers.binary_search_by_key(&lost, |sent| sent.wrote());
                        let other = other.ok().map(|place| (writers[place], leases));
                        overwrote(op, [read, request], at, other, findings);
                    }
                    known = Some((request, request.writes));
                }
                Some((_, Answer::Refused)) => {}
                Some((_, Answer::Unknown)) | None if request.writes.is_none() => {}
                Some((_, Answer::Unknown)) | None => break,
            }
        }
    }
}

/// `other` wrote the value that was lost.
fn overwrote(
    op: &Op<'_>,
    [read, write]: [&Request<'_>; 2],
    at: At,
    other: Option<(&Sent<'_>, &[Lease<'_>])>,
    findings: &mut Findings<'_>,
) {
    let fenced = read.token.is_some() && write.token.is_some();
    let rule = if fenced { Rule::LostUpdate } else { Rule::UnfencedLoss };
    let what = format!("client {} overwrote a value of register {:?} that it had not read", op.client, write.register);
    let other_called = other.map(|(sent, leases)| sent.lease.map_or(sent.request.called, |lease| leases[lease].called));
    let lines = other.map(|(sent, _)| sent.request.called).into_iter().chain([read.called, write.called, at]);
    let scene = Scene {
        from: other_called.map_or(op.called.at, |called| called.at.min(op.called.at)),
        to: at.at,
        lease: op.grant.map_or(0, |grant| grant.lease),
        key: op.key,
        clients: [op.client, other.map_or(op.client, |(sent, _)| sent.client)],
    };
    findings.add_at(rule, &scene, lines.map(|at| at.line).collect(), what);
}
