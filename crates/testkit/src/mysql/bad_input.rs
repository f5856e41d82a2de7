//! What servers, operators and addresses can get wrong: a typed error that says what to do, and no credential in it.

use leasehold_core::{Backed, ErrorKind, LockerExt};
use mysql_async::Pool;
use mysql_async::prelude::Queryable;

use super::server::Server;
use super::steps::{is_told, migrated};
use super::subject::Subject;
use leasehold_mysql::ConnectionSettings;

pub async fn what_is_missing_is_said_and_what_to_do<S: Subject>() {
    let server = Server::needed(&[]).await;
    let error = S::connect_to(&server.url()).await.unwrap_err();
    is_told(&error, "leasehold migrate");

    // The table goes away under a client that has seen it.
    S::migrate_at(&server.url()).await.unwrap();
    let locks = S::connect_to(&server.url()).await.unwrap();
    server.sql(&[&format!("DROP TABLE leasehold.{}", S::TABLE)]).await;
    let error = locks.lock("k").await.unwrap_err();
    is_told(&error, "leasehold migrate");
}

/// The name of the schema of the table of the keys, and its version.
async fn comment<S: Subject>(server: &Server) -> (String, String) {
    let comment = format!("SELECT table_comment FROM information_schema.tables WHERE table_name = '{}'", S::TABLE);
    let comment: Option<String> = server.session().await.unwrap().query_first(comment).await.unwrap();
    let comment = comment.unwrap();
    let (name, version) = comment.rsplit_once(' ').unwrap();
    (name.to_owned(), version.to_owned())
}

pub async fn a_newer_table_is_used_if_it_says_so_and_refused_by_name_if_not<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    let (name, version) = comment::<S>(&server).await;
    let newer = |rest: String| {
        format!("ALTER TABLE leasehold.{} ADD COLUMN IF NOT EXISTS later INT, COMMENT='{name} {rest}'", S::TABLE)
    };
    server.sql(&[&newer(format!("4711 since {version}"))]).await;
    S::connect_to(&server.url()).await.unwrap().lock("k").await.unwrap().release().await.unwrap();
    S::migrate_at(&server.url()).await.unwrap();

    server.sql(&[&newer("4711 since 4710".into())]).await;
    for error in [S::connect_to(&server.url()).await.unwrap_err(), S::migrate_at(&server.url()).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Backend);
        for word in ["4711", "4710", &format!("version {version}"), "newer"] {
            assert!(error.to_string().contains(word), "{word}: {error}");
        }
        assert!(!error.to_string().contains("migrate`"), "that would not help: {error}");
    }
}

pub async fn settings_are_checked_before_anything_is_sent<S: Subject>() {
    let access =
        || ConnectionSettings::default().url("mysql://u:canary@127.0.0.1:1/db?allow_public_key_retrieval=true");
    for senseless in [access().table("a`b"), access().namespace(""), ConnectionSettings::default()] {
        assert_eq!(S::connect(senseless).await.unwrap_err().kind(), ErrorKind::InvalidOptions);
    }
}

pub async fn a_pool_of_the_callers_does_not_show_its_password_either<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    server.sql(&["CREATE USER u@'%' IDENTIFIED BY 'canary'", "GRANT ALL ON leasehold.* TO u@'%'"]).await;
    let url = server.url_of("u", "canary");
    let access = ConnectionSettings::default()
        .pool(Pool::from_url(url.replace("allow_public_key_retrieval=true", "prefer_socket=false")).unwrap());
    assert!(!format!("{access:?}").contains("canary"));
    let locks = S::connect(access).await.unwrap();
    let own = S::connect_to(&url).await.unwrap();
    let guard = locks.lock("k").await.unwrap();
    assert!(!format!("{locks:?} {own:?} {guard:?}").contains("canary"));
    locks.engine().close().await;
}
