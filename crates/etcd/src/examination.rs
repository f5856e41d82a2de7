use futures::future::join_all;
use leasehold_core::{Error, ErrorKind, Finding, Result};

use crate::address::Address;
use crate::failure::is_compacted;
use crate::names::Names;
use crate::nodes::Nodes;
use crate::proto::{
    ALARM, AlarmMember, AlarmResponse, Compare, MEMBER_LIST, Member, MemberListResponse, Operation, RANGE,
    RangeRequest, RangeResponse, STATUS, StatusResponse, TXN, TxnRequest, TxnResponse, USER_GET, UserGetRequest,
    UserGetResponse,
};
use crate::store::read;

/// The first releases of 3.4 and 3.5 in which a leader that stood still ends no leases when it goes on (etcd-io/etcd#15247).
const CORRECTED: [(u64, u64); 2] = [(4, 31), (5, 13)];

/// What etcd's database may grow to unless it was told otherwise. Servers before 3.6 do not tell what they were told.
const QUOTA: i64 = 2 * 1024 * 1024 * 1024;

/// How many revisions a cluster may have that compacts itself, because the first hour is not over yet.
const HISTORY: i64 = 10_000;

/// Checks the members of the cluster of a URL, their alarms, space and history, the rights of the user, and what is stored under the
/// names of locks.
pub(crate) async fn examine(url: &str) -> Result<Vec<Finding>> {
    let address = Address::parse(url)?;
    // At the same time: of several silent members each is waited for as long as one.
    let each = address.endpoints.iter().map(|endpoint| {
        let alone = Address { endpoints: vec![endpoint.clone()], ..address.clone() };
        let host = endpoint.uri().authority().map(ToString::to_string).unwrap_or_default();
        async move { member(&host, Nodes::new(alone)).await }
    });
    let mut findings = join_all(each).await.concat();
    let nodes = Nodes::new(address.clone());
    let names = Names::new(&address.namespace);
    findings.extend(members(&nodes).await);
    findings.push(alarms(&nodes).await);
    findings.push(history(&nodes, &names).await);
    findings.push(rights(&nodes, &names).await);
    findings.extend(foreign(&nodes, &names).await);
    nodes.close();
    Ok(findings)
}

/// What one server of the URL says of itself.
async fn member(host: &str, node: Nodes) -> Vec<Finding> {
    let said: Result<StatusResponse> = node.ask(read("examine", STATUS), ()).await;
    node.close();
    match said {
        Ok(status) => vec![version(host, &status.version), space(host, &status)],
        // A server that wants another user answers.
        Err(error) if error.kind() != ErrorKind::Unavailable => vec![unread("member", &error.to_string())],
        Err(error) => {
            let text = format!("{host} does not answer ({error})");
            vec![Finding::warning("member-unreachable", text).cure("start it, or let a new member take its place")]
        }
    }
}

fn version(host: &str, version: &str) -> Finding {
    let said = version.escape_debug();
    let numbers: Vec<u64> = version.split(['.', '-']).map_while(|part| part.parse().ok()).collect();
    let [major, minor, patch, ..] = numbers[..] else {
        return unread("server-version", &format!("{host} says that its version is {said}"));
    };
    let first_of_minor = CORRECTED.iter().find(|(of, _)| *of == minor);
    let is_corrected =
        (major, minor) >= (3, 6) || first_of_minor.is_some_and(|(_, first)| major == 3 && patch >= *first);
    if is_corrected {
        Finding::well("server-version", format!("{host} is etcd {said}"))
    } else {
        let text = format!(
            "{host} is etcd {said}, in which a leader that stood still ends leases when it goes on, also of locks that are held \
             (etcd-io/etcd#15247)"
        );
        Finding::warning("server-version", text).cure("install etcd 3.4.31, 3.5.13 or 3.6.0, or a later one")
    }
}

fn space(host: &str, status: &StatusResponse) -> Finding {
    let quota = if status.quota > 0 { status.quota } else { QUOTA };
    let share = status.size.saturating_mul(100) / quota;
    if share < 80 {
        return Finding::well("space", format!("{host} uses {share} % of the space that its database may take"));
    }
    let told = if status.quota > 0 { "" } else { ", where it has the quota of 2 GiB, which it does not tell" };
    let text = format!("{host} uses {share} % of the space that its database may take{told}: then it takes no writes");
    let defrag = "etcdctl defrag --cluster; start etcd with --auto-compaction-retention=1h";
    Finding::warning("space", text).cure(defrag)
}

/// How many members there are, and which of them do not vote.
async fn members(nodes: &Nodes) -> Vec<Finding> {
    let members: Vec<Member> = match nodes.ask(read("examine", MEMBER_LIST), ()).await {
        Ok(MemberListResponse { members }) => members,
        Err(error) => return vec![unread("member-count", &format!("the members cannot be read: {error}"))],
    };
    let mut findings = vec![count(members.iter().filter(|member| !member.learner).count())];
    for member in members {
        let name = member.name.escape_debug();
        if member.learner {
            let text = format!("the member {name} has no vote");
            let cure = format!("etcdctl member promote {:x}", member.id);
            findings.push(Finding::warning("member-without-vote", text).cure(cure));
        } else if member.name.is_empty() {
            let text = format!("the member {:x} was never started", member.id);
            let cure = format!("etcdctl member remove {:x}", member.id);
            findings.push(Finding::warning("member-not-started", text).cure(cure));
        }
    }
    findings
}

fn count(voters: usize) -> Finding {
    let add = "etcdctl member add NAME --peer-urls=http://HOST:2380";
    let members = if voters == 1 { "1 member votes".to_owned() } else { format!("{voters} members vote") };
    if voters < 3 {
        let text = format!("{members}: when one is lost, no lock can be taken, and without its data all are forgotten");
        Finding::warning("member-count", text).cure(add)
    } else if voters.is_multiple_of(2) {
        let text = format!("{members}, which survive no more losses than {}", voters - 1);
        Finding::warning("member-count", text).cure(add)
    } else {
        Finding::well("member-count", format!("{members}, of which {} may be lost", (voters - 1) / 2))
    }
}

async fn alarms(nodes: &Nodes) -> Finding {
    let alarms: Vec<AlarmMember> = match nodes.ask(read("examine", ALARM), ()).await {
        Ok(AlarmResponse { alarms }) => alarms,
        Err(error) => return unread("alarm", &format!("the alarms cannot be read: {error}")),
    };
    let raised = |kind| alarms.iter().find(|alarm| alarm.alarm == kind).map(|alarm| alarm.member);
    if let Some(member) = raised(2) {
        Finding::error("alarm", format!("the data of member {member:x} differ from those of the others (CORRUPT)"))
            .cure(format!("etcdctl member remove {member:x}, and add it anew without its data"))
    } else if raised(1).is_some() {
        let cure = "etcdctl compact $(etcdctl endpoint status --write-out=fields | sed -n 's/\"Revision\" : //p' | tail -n 1) && \
                    etcdctl defrag && etcdctl alarm disarm";
        Finding::error("alarm", "the database is full, and takes no writes (NOSPACE)").cure(cure)
    } else {
        Finding::well("alarm", "no alarm is raised")
    }
}

/// Whether the history was ever compacted. No request tells whether etcd was told to do so by itself.
async fn history(nodes: &Nodes, names: &Names) -> Finding {
    let at = |revision| RangeRequest { key: names.base(), revision, ..RangeRequest::default() };
    let now: Result<RangeResponse> = nodes.ask(read("examine", RANGE), at(0)).await;
    let revisions = match now {
        Ok(now) => now.header.map_or(0, |header| header.revision),
        Err(error) => return unread("history", &format!("the revision cannot be read: {error}")),
    };
    if revisions <= HISTORY {
        return Finding::well("history", format!("it has {revisions} revisions"));
    }
    let first: Result<RangeResponse> = nodes.ask(read("examine", RANGE), at(1)).await;
    match first {
        Err(error) if is_compacted(&error) => Finding::well("history", "it is compacted"),
        Err(error) => unread("history", &format!("the first revision cannot be read: {error}")),
        Ok(_) => {
            let text = format!(
                "none of its {revisions} revisions was ever compacted: a key is slower the more often it was locked, and the \
                 database grows until it is full"
            );
            let cure = format!("etcdctl compact {revisions}; start etcd with --auto-compaction-retention=1h");
            Finding::warning("history", text).cure(cure)
        }
    }
}

/// Whether the user may read and write the names of locks. Nothing is written: etcd looks at the rights before it compares.
async fn rights(nodes: &Nodes, names: &Names) -> Finding {
    let (prefix, probe) = (&names.root, names.base());
    let may_read: Result<RangeResponse> = nodes.ask(read("examine", RANGE), RangeRequest::all(names.all(), 1)).await;
    let never = vec![Compare::present(&probe), Compare::absent((probe.clone(), Vec::new()))];
    let write =
        TxnRequest { compare: never, success: vec![Operation::put(&probe, Vec::new(), 0)], failure: Vec::new() };
    let may_write: Result<TxnResponse> = nodes.ask(read("examine", TXN), write).await;
    let refused = |error: Option<Error>| error.is_some_and(|error| error.kind() == ErrorKind::Backend);
    let lacks = match (refused(may_read.err()), refused(may_write.err())) {
        (false, false) => return Finding::well("privilege", format!("the user may read and write below {prefix}")),
        (true, true) => "read or write",
        (true, false) => "read",
        (false, true) => "write",
    };
    let name = nodes.address.user.as_ref().map(|(name, _)| name.clone()).unwrap_or_default();
    let known: Result<UserGetResponse> =
        nodes.ask(read("examine", USER_GET), UserGetRequest { name: name.clone() }).await;
    let role =
        known.ok().and_then(|known| known.roles.into_iter().next()).unwrap_or_else(|| "ROLE_OF_THE_USER".to_owned());
    let (name, role) = (name.escape_debug(), role.escape_debug());
    Finding::error("privilege", format!("the user {name} may not {lacks} below {prefix}"))
        .cure(format!("etcdctl role grant-permission {role} readwrite --prefix=true {prefix}"))
}

/// Keys under the names of locks that Leasehold did not write, or that have no lease: they are in the way for ever.
async fn foreign(nodes: &Nodes, names: &Names) -> Vec<Finding> {
    /// How many keys are looked at, and how many are told.
    const LOOKED: i64 = 1000;
    let answer: Result<RangeResponse> =
        nodes.ask(read("examine", RANGE), RangeRequest::all(names.lines("", None), LOOKED)).await;
    let found = match answer {
        Ok(found) => found.kvs,
        Err(error) => return vec![unread("foreign-key", &format!("the names of locks cannot be read: {error}"))],
    };
    let looked = found.len();
    let is_foreign = |lease: i64, key: &[u8]| lease == 0 || names.read(key).is_none();
    let foreign: Vec<_> = found.into_iter().filter(|found| is_foreign(found.lease, &found.key)).collect();
    if foreign.is_empty() {
        return vec![Finding::well("foreign-key", format!("nobody else's among {looked} keys of locks"))];
    }
    let tell = |key: &[u8]| {
        let key = String::from_utf8_lossy(key);
        let key = nodes.address.secrets.hide(&key.escape_debug().to_string());
        let text = format!("{key} has no lease, or is no name that Leasehold writes: nobody can lock its key");
        Finding::warning("foreign-key", text).cure(format!("etcdctl del {key}"))
    };
    let more = |others| format!("{others} more keys are not of Leasehold");
    let found = foreign.iter().map(|found| tell(&found.key)).collect();
    Finding::first_of(found, more, "delete the others, and ask again")
}

fn unread(id: &'static str, text: &str) -> Finding {
    Finding::unknown(id, text).cure("ask as a user with the role root")
}

#[cfg(test)]
mod tests {
    use leasehold_core::Health;

    use super::*;

    /// Only 3.4.23 is at hand.
    #[test]
    fn releases_before_the_correction_are_a_warning() {
        for (said, health) in [
            ("3.4.30", Health::Warning),
            ("3.4.31", Health::Well),
            ("3.5.12", Health::Warning),
            ("3.5.13", Health::Well),
            ("3.6.0", Health::Well),
            ("3.3.27", Health::Warning),
            ("4.0.0", Health::Well),
            ("odd", Health::Unknown),
        ] {
            assert_eq!(version("h", said).health, health, "{said}");
        }
    }

    /// No database here has that much in it.
    #[test]
    fn a_database_that_is_nearly_full_is_a_warning() {
        for (size, quota, health) in [
            (QUOTA / 100 * 81, 0, Health::Warning),
            (QUOTA / 100 * 79, 0, Health::Well),
            (QUOTA, QUOTA * 4, Health::Well),
            (QUOTA * 4, QUOTA * 4, Health::Warning),
        ] {
            let status = StatusResponse { size, quota, ..StatusResponse::default() };
            assert_eq!(space("h", &status).health, health, "{size} of {quota}");
        }
    }

    #[test]
    fn an_odd_number_of_three_members_or_more_is_well() {
        let healths = (1..=6).map(|voters| count(voters).health == Health::Well);
        assert_eq!(healths.collect::<Vec<_>>(), [false, false, true, false, true, false]);
    }
}
