//! The messages of etcd's API (version 3) that are used here, and no more of them than is used. They are written by hand, so that
//! nobody who compiles this crate needs a protobuf compiler.

use prost::{Message, Oneof};

pub(crate) const TXN: &str = "/etcdserverpb.KV/Txn";
pub(crate) const RANGE: &str = "/etcdserverpb.KV/Range";
pub(crate) const WATCH: &str = "/etcdserverpb.Watch/Watch";
pub(crate) const LEASE_GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
pub(crate) const LEASE_REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
pub(crate) const LEASE_KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
pub(crate) const LEASE_TIME_TO_LIVE: &str = "/etcdserverpb.Lease/LeaseTimeToLive";
pub(crate) const STATUS: &str = "/etcdserverpb.Maintenance/Status";
pub(crate) const ALARM: &str = "/etcdserverpb.Maintenance/Alarm";
pub(crate) const MEMBER_LIST: &str = "/etcdserverpb.Cluster/MemberList";
pub(crate) const USER_GET: &str = "/etcdserverpb.Auth/UserGet";
pub(crate) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Header {
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(crate) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) value: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) limit: i64,
    /// What was there at this revision. 0: what is there now.
    #[prost(int64, tag = "4")]
    pub(crate) revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub(crate) more: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Operation {
    #[prost(oneof = "Request", tags = "1, 2, 3, 4")]
    pub(crate) request: Option<Request>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Request {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRequest),
    #[prost(message, tag = "4")]
    Txn(TxnRequest),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Outcome {
    #[prost(oneof = "Response", tags = "1, 4")]
    pub(crate) response: Option<Response>,
}

/// Of the outcomes of a transaction only what was read matters, and the transactions inside of it.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Response {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    #[prost(message, tag = "4")]
    Txn(TxnResponse),
}

/// That the field `target` of a key, or of each key of a range, equals a value. A key that is not there has 0 in each.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Compare {
    /// Only `EQUAL` (0), `GREATER` (1) and `LESS` (2) are used.
    #[prost(int32, tag = "1")]
    pub(crate) result: i32,
    #[prost(int32, tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) key: Vec<u8>,
    #[prost(oneof = "Target", tags = "5, 6, 7")]
    pub(crate) union: Option<Target>,
    #[prost(bytes = "vec", tag = "64")]
    pub(crate) range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Target {
    #[prost(int64, tag = "5")]
    Created(i64),
    #[prost(int64, tag = "6")]
    Modified(i64),
    #[prost(bytes = "vec", tag = "7")]
    Value(Vec<u8>),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<Operation>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<Operation>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<Outcome>,
}

/// A request about one lease: `LeaseRevoke`, `LeaseKeepAlive`, `LeaseTimeToLive`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LeaseRequest {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LeaseGrantRequest {
    #[prost(int64, tag = "1")]
    pub(crate) ttl: i64,
}

/// The answer to every request about a lease. `LeaseRevoke` fills in neither.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LeaseResponse {
    #[prost(int64, tag = "2")]
    pub(crate) id: i64,
    /// In seconds. 0 or less: there is no such lease.
    #[prost(int64, tag = "3")]
    pub(crate) ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) create: Option<WatchCreate>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchCreate {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) start_revision: i64,
    /// `NOPUT` is 0.
    #[prost(int32, repeated, tag = "5")]
    pub(crate) filters: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    #[prost(bool, tag = "4")]
    pub(crate) canceled: bool,
    /// Not 0: what happened since the start revision is not kept any more.
    #[prost(int64, tag = "5")]
    pub(crate) compact_revision: i64,
    #[prost(message, repeated, tag = "11")]
    pub(crate) events: Vec<Event>,
}

/// That a key was deleted: nothing else is watched for.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Event {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(crate) token: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusResponse {
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    /// Of the database, in bytes.
    #[prost(int64, tag = "3")]
    pub(crate) size: i64,
    /// To what it may grow. 0: the server is older than 3.6, and does not tell.
    #[prost(int64, tag = "12")]
    pub(crate) quota: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MemberListResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) members: Vec<Member>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Member {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    /// Empty: it was never started.
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    /// Whether it has no vote.
    #[prost(bool, tag = "5")]
    pub(crate) learner: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AlarmResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) alarms: Vec<AlarmMember>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AlarmMember {
    #[prost(uint64, tag = "1")]
    pub(crate) member: u64,
    /// `NOSPACE` is 1, `CORRUPT` is 2.
    #[prost(int32, tag = "2")]
    pub(crate) alarm: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct UserGetRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct UserGetResponse {
    #[prost(string, repeated, tag = "2")]
    pub(crate) roles: Vec<String>,
}

impl RangeRequest {
    /// So many keys of a range at most.
    pub(crate) fn all((key, range_end): Range, limit: i64) -> Self {
        Self { key, range_end, limit, revision: 0 }
    }
}

impl Compare {
    /// That there is no key in this range, which is one key if it has no end.
    pub(crate) fn absent((key, range_end): Range) -> Self {
        Self { result: 0, target: 1, key, union: Some(Target::Created(0)), range_end }
    }

    /// That there is this key.
    pub(crate) fn present(key: &[u8]) -> Self {
        Self { result: 1, ..Self::absent((key.to_vec(), Vec::new())) }
    }

    /// That the key has a value that begins with this, and goes on.
    pub(crate) fn begins(key: &[u8], value: &[u8]) -> [Self; 2] {
        let (from, to) = starting_with(value);
        [Self { result: 1, ..Self::value(key, &from) }, Self { result: 2, ..Self::value(key, &to) }]
    }

    /// That the key was last written by this revision.
    pub(crate) fn unchanged(key: &[u8], revision: i64) -> Self {
        let union = Some(Target::Modified(revision));
        Self { result: 0, target: 2, key: key.to_vec(), union, range_end: Vec::new() }
    }

    /// That the key has this value.
    pub(crate) fn value(key: &[u8], value: &[u8]) -> Self {
        let union = Some(Target::Value(value.to_vec()));
        Self { result: 0, target: 3, key: key.to_vec(), union, range_end: Vec::new() }
    }
}

/// From the first key, inclusive, to the second, exclusive. Only the first one if the second is empty.
pub(crate) type Range = (Vec<u8>, Vec<u8>);

/// All keys that start with `prefix`, which does not end with the byte 0xFF.
pub(crate) fn starting_with(prefix: impl Into<Vec<u8>>) -> Range {
    let prefix = prefix.into();
    let mut end = prefix.clone();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    (prefix, end)
}

impl Operation {
    pub(crate) fn get((key, range_end): Range) -> Self {
        Self { request: Some(Request::Range(RangeRequest { key, range_end, ..RangeRequest::default() })) }
    }

    pub(crate) fn get_one(key: &[u8]) -> Self {
        Self::get((key.to_vec(), Vec::new()))
    }

    pub(crate) fn put(key: &[u8], value: Vec<u8>, lease: i64) -> Self {
        Self { request: Some(Request::Put(PutRequest { key: key.to_vec(), value, lease })) }
    }

    pub(crate) fn txn(txn: TxnRequest) -> Self {
        Self { request: Some(Request::Txn(txn)) }
    }

    pub(crate) fn delete(key: &[u8]) -> Self {
        Self { request: Some(Request::Delete(DeleteRequest { key: key.to_vec() })) }
    }
}

impl TxnResponse {
    /// The revision of the store after the transaction.
    pub(crate) fn revision(&self) -> i64 {
        self.header.as_ref().map_or(0, |header| header.revision)
    }

    /// What was read, in the order of the reads.
    pub(crate) fn reads(self) -> Vec<Vec<KeyValue>> {
        let read = |outcome: Outcome| match outcome.response {
            Some(Response::Range(range)) => Some(range.kvs),
            _ => None,
        };
        self.responses.into_iter().filter_map(read).collect()
    }

    /// What became of the transactions inside of this one, in their order.
    pub(crate) fn inner(self) -> Vec<Self> {
        let inner = |outcome: Outcome| match outcome.response {
            Some(Response::Txn(inner)) => Some(inner),
            _ => None,
        };
        self.responses.into_iter().filter_map(inner).collect()
    }
}
