//! The least that a user needs.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "tests, whose names say what they show"
)]

use std::time::Duration;

use leasehold_core::{Admin, ErrorKind, LockKey, LockerExt};

use super::{Server, Subject, traps};
use crate::Access;

pub async fn the_rights_that_the_readme_names_suffice<S: Subject>() {
    let server = Server::needed(&[]).await;
    S::migrate_at(&server.url()).await.unwrap();
    server.sql(&["CREATE USER u@'%' IDENTIFIED BY 'p w'"]).await;
    for rights in S::RIGHTS {
        server.sql(&[&format!("GRANT {rights} TO u@'%'")]).await;
    }
    let url = server.url_of("u", "p%20w");
    let (ours, theirs) = (S::connect_to(&url).await.unwrap(), S::connect_to(&url).await.unwrap());
    traps::whole_life::<S>(&ours, &theirs, "k").await;
    let guard = ours.lock("k").await.unwrap();
    assert_eq!(theirs.inspect(guard.key()).await.unwrap().holders.len(), 1);
    assert_eq!(theirs.list("k", None).await.unwrap().keys.len(), 1);
    guard.release().await.unwrap();
    assert!(theirs.inspect(&LockKey::new("k").unwrap()).await.unwrap().holders.is_empty());

    // There is nothing to collect yet, so nothing is refused, unless a second has passed.
    if let Err(error) = S::gc(&ours, Duration::ZERO).await {
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains("lacks a right"), "{error}");
    }
    let error = S::migrate(Access::default().url(url).table("other")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(error.to_string().contains("right"), "{error}");
}
