//! A grant that was called after another of its key had returned has a larger token. That no two are equal is found where the
//! origins of tokens are.

use super::findings::Findings;
use super::leases::{Lease, clash};
use super::rules::Rule;

/// Finds grants with a smaller token than one that had returned before their call. The leases are sorted by key and call.
pub(super) fn check(leases: &[Lease<'_>], findings: &mut Findings<'_>) {
    for called in leases.chunk_by(|one, other| one.key == other.key) {
        let mut returned: Vec<&Lease<'_>> = called.iter().collect();
        returned.sort_by_key(|lease| lease.granted);
        let mut returned = returned.into_iter().peekable();
        let mut largest: Option<&Lease<'_>> = None;
        for lease in called {
            while let Some(before) = returned.next_if(|before| before.granted.at < lease.called.at) {
                largest = Some(largest.filter(|largest| largest.token >= before.token).unwrap_or(before));
            }
            if let Some(before) = largest.filter(|largest| largest.token > lease.token) {
                let what = format!(
                    "client {} was granted {:?} with token {}, and after that client {} called and got token {}",
                    before.client, lease.key, before.token, lease.client, lease.token
                );
                let rule = if lease.attach { Rule::StaleAttach } else { Rule::BackwardToken };
                clash([before, lease], (rule, before.called.at), what, findings);
            }
        }
    }
}
