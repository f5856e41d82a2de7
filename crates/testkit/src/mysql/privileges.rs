//! The least that a user needs.

use std::time::Duration;

use leasehold_core::{ErrorKind, Locker};

use super::steps::{self, is_told, migrated};
use super::subject::Subject;
use crate::eventually;
use leasehold_mysql::ConnectionSettings;

pub async fn the_rights_that_the_readme_names_suffice<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    server.sql(&["CREATE USER u@'%' IDENTIFIED BY 'p w'"]).await;
    for rights in S::RIGHTS {
        server.sql(&[&format!("GRANT {rights} TO u@'%'")]).await;
    }
    let url = server.url_of("u", "p%20w");
    let (ours, theirs) = (S::connect_to(&url).await.unwrap(), S::connect_to(&url).await.unwrap());
    steps::whole_life::<S>(&ours, &theirs, "k").await;

    // Once there is something to collect, it is refused.
    eventually("it is refused", async || S::gc(&ours, Duration::ZERO).await.is_err()).await;
    let error = S::gc(&ours, Duration::ZERO).await.unwrap_err();
    is_told(&error, "lacks a right");
    assert_eq!(error.backend(), Some(ours.capabilities().backend()), "{error}");

    // What a user has no right to, the server keeps from it.
    server.sql(&["CREATE USER nobody@'%'", "CREATE USER sweeper@'%'"]).await;
    server.sql(&["GRANT CREATE ON leasehold.* TO nobody@'%'"]).await;
    server.sql(&[&format!("GRANT DELETE ON leasehold.{} TO sweeper@'%'", S::TABLE)]).await;
    for user in ["nobody", "sweeper"] {
        let error = S::connect_to(&server.url_of(user, "")).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains("GRANT SELECT, INSERT, UPDATE"), "{user}: {error}");
    }

    let error = S::migrate(ConnectionSettings::default().url(url).table("other")).await.unwrap_err();
    is_told(&error, "right");
}
