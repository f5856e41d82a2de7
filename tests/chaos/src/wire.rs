//! What clients and the runner say to each other: lines of JSON, a request and its reply.

use std::path::PathBuf;
use std::time::Duration;

use leasehold_chaos::register::Answer;
use serde::{Deserialize, Serialize};

/// What a client process is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// By name.
    pub(crate) setup: String,
    pub(crate) url: String,
    /// The number of this process. No two processes of a run share one.
    pub(crate) client: u32,
    pub(crate) seed: u64,
    /// The port of the runner's resource.
    pub(crate) resource: u16,
    /// Where the history goes.
    pub(crate) folder: PathBuf,
    pub(crate) ttl: Duration,
}

/// What a client asks of the runner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Writes to a register, or reads it. With a token, it refuses smaller ones from then on.
    Ask { register: String, token: Option<u64>, writes: Option<u64> },
    /// A detached lock, for another client.
    Offer { client: u32, text: String },
    /// Asks for a detached lock of another client. Two are told of each.
    Take { client: u32 },
    /// Something that the client does to itself has had an effect.
    Proof { fault: String },
    /// Something is wrong that no line of the history says.
    Complaint { text: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Answer(Answer),
    Taken { text: String },
    Nothing,
}
