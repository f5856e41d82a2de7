use crate::client::endpoint::Endpoint;

/// What a backend needs of its servers, for [`examine`](crate::examine).
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// The commands without which it grants no locks, as ACL rules name them.
    pub commands: &'static [&'static str],
    /// The commands without which it grants locks, and waits longer or tells less.
    pub spare: &'static [&'static str],
    /// The parts of a key's names, and what is written there.
    pub parts: &'static [(&'static str, Form)],
}

/// What is written under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A lock: a string that begins with an owner id and an epoch, an [`Entry`](crate::Entry).
    Entry,
    /// A lock: a hash with this field.
    Hash(&'static str),
    /// A counter: a string of this word, a space, and a number; without the word, of the number alone.
    Counter(&'static str),
    /// Another hash with a lease.
    Queue,
    /// A sorted set, of which nothing depends.
    SortedSet,
    /// Another string.
    Text,
}

/// The user as whom the servers know us.
pub(super) fn user_of(endpoint: &Endpoint) -> &str {
    endpoint.config.username.as_deref().unwrap_or("default")
}
