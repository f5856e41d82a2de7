//! Stores without a function of a backend, and a script that asks nothing of the server.

use std::time::Duration;

use leasehold_core::{Claim, GrantRef, LockKey, Mode, Result};
use leasehold_redis::{
    ConnectionSettings, Endpoint, Namespace, Notify, Script, ScriptArguments, Source, Store, StoreOptions,
};

pub(crate) const RELEASES: StoreOptions = StoreOptions { functions: &[], notifications: Notify::Releases };

pub(crate) static ECHO: Script = Script::new(&["return { 'heard', ARGV[1] }"]);

pub(crate) async fn open(url: &str) -> Result<Store> {
    open_with(url, &ConnectionSettings::default()).await
}

/// Looks for nothing that a server should not be.
pub(crate) async fn open_with(url: &str, settings: &ConnectionSettings) -> Result<Store> {
    let endpoint = Endpoint::of(&Source::Url(url.to_owned()))?;
    Store::connect(&endpoint, &Namespace::default(), settings, RELEASES).await
}

/// What is heard by a script about this key: a word, or what a server that a test plays has in its place.
pub(crate) async fn heard(store: &Store, key: &str) -> Result<String> {
    let reply = store.run(&ECHO, 1, ScriptArguments::default().text(key).text("a"), None).await?;
    assert_eq!(reply.words()[0], "heard");
    Ok(reply.words()[1].to_owned())
}

/// A grant of this key, by nobody.
pub(crate) fn grant(key: &str) -> GrantRef {
    Claim::new(&LockKey::new(key).unwrap(), Mode::Exclusive, Duration::from_secs(60)).grant(Some(7))
}

/// A text as a server sends it.
pub(crate) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}
