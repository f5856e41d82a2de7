//! A grant that was called after another of its key had returned has a larger token. That no two are equal is found where the
//! origins of tokens are.

use super::findings::{Findings, Scene};
use super::leases::Lease;
use super::terms::Rule;
use super::work::Work;

/// Finds grants with a smaller token than one that had returned before their call. The leases are sorted by key and call.
pub(super) fn check(leases: &[Lease<'_>], findings: &mut Findings<'_>, work: &Work) {
    for called in leases.chunk_by(|one, other| {
        work.count();
        one.key == other.key
    }) {
        let mut returned: Vec<&Lease<'_>> = called.iter().collect();
        work.sort(&mut returned, |lease| lease.granted);
        let mut returned = returned.into_iter().peekable();
        let mut largest: Option<&Lease<'_>> = None;
        for lease in called {
            while let Some(before) = returned.next_if(|before| before.granted.at < lease.called.at) {
                work.count();
                largest = Some(largest.filter(|largest| largest.token >= before.token).unwrap_or(before));
            }
            if let Some(before) = largest.filter(|largest| largest.token > lease.token) {
                backward(before, lease, findings);
            }
        }
    }
}

fn backward(before: &Lease<'_>, lease: &Lease<'_>, findings: &mut Findings<'_>) {
    let what = format!(
        "client {} was granted {:?} with token {}, and after that client {} called and got token {}",
        before.client, lease.key, before.token, lease.client, lease.token
    );
    let clients = [before.client, lease.client];
    let scene = Scene {
        from: before.called.at,
        to: lease.granted.at,
        lease: before.nanos(),
        key: lease.key,
        clients: &clients,
    };
    let rule = if lease.attach { Rule::StaleAttach } else { Rule::BackwardToken };
    findings.add_at(rule, &scene, before.lines().chain(lease.lines()).collect(), what);
}
