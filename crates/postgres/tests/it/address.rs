//! What a URL says, and the name of a schema.

use std::time::Duration;

use futures::FutureExt;
use leasehold_postgres::{
    Attempt, Backed, Backend, Claim, Error, ErrorKind, LocalHandoff, LockKey, LockerExt, Mode, Postgres,
};
use leasehold_testkit::{corpus_of_urls, eventually, shown, test};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::sql::{number, server, sql};

/// The error of a URL that is refused before anything is sent.
#[track_caller]
fn refused(url: &str) -> Error {
    let connected = Postgres::connect(url).now_or_never().unwrap_or_else(|| panic!("{url}: it connects"));
    connected.map(drop).unwrap_err()
}

/// What a client says first, and its password.
async fn greeting(listener: TcpListener) -> [String; 2] {
    const ASKS_FOR_THE_PASSWORD: &[u8] = b"R\0\0\0\x08\0\0\0\x03";
    let (mut client, _) = listener.accept().await.unwrap();
    let mut said = [String::new(), String::new()];
    for (round, said) in said.iter_mut().enumerate() {
        if round == 1 {
            client.write_all(ASKS_FOR_THE_PASSWORD).await.unwrap();
            assert_eq!(client.read_u8().await.unwrap(), b'p');
        }
        let mut bytes = vec![0; usize::try_from(client.read_i32().await.unwrap()).unwrap() - 4];
        client.read_exact(&mut bytes).await.unwrap();
        *said = String::from_utf8(bytes).unwrap();
    }
    said
}

#[test(server)]
async fn parameters_of_leasehold_are_not_passed_to_the_driver() {
    let server = server(&[]).await;
    sql(&server.url(), &["CREATE ROLE app SUPERUSER LOGIN"]).await;
    let direct = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "{}&namespace=billing&schema=l_1&pool_max=3&group_commit=false&listen={}&connect_timeout=4",
        server.url_of("app", "p-canary"),
        direct.local_addr().unwrap()
    );
    Postgres::migrate(&url).await.unwrap();
    let locks = Postgres::connect(&url).await.unwrap();
    assert!(!format!("{locks:?}").contains("canary"), "{locks:?}");
    let mut claiming = JoinSet::new();
    for number in 0..8 {
        let locks = locks.clone();
        claiming.spawn(async move {
            let key = LockKey::new(format!("k{number}")).unwrap();
            let claim = Claim::new(&key, Mode::Exclusive, Duration::from_secs(30));
            locks.engine().backend().try_acquire(&claim).await.unwrap()
        });
    }
    assert!(claiming.join_all().await.iter().all(|attempt| matches!(attempt, Attempt::Granted { .. })));
    let each_by_itself = "SELECT count(DISTINCT xmin::text) FROM l_1.locks WHERE name LIKE 'billing\\000k_'";
    assert_eq!(number(&server.url(), each_by_itself).await, 8);
    let ours = "SELECT count(*) FROM pg_stat_activity WHERE (usename, application_name) = ('app', 'leasehold')";
    eventually("as many connections as it may have", async || number(&server.url(), ours).await == 3).await;

    let key = LockKey::new("k").unwrap();
    let store = locks.engine().backend();
    let (_, [said, password]) = tokio::join!(store.notifications().unwrap().subscribe(&key), greeting(direct));
    for setting in ["user\0app\0", "database\0leasehold\0", "application_name\0leasehold\0"] {
        assert!(said.contains(setting), "{said:?}");
    }
    assert_eq!(password, "p-canary\0");
    for (query, listens) in [("?listen=false", false), ("", true)] {
        let locks = Postgres::connect(&format!("{}{query}", server.url())).await.unwrap();
        assert_eq!(locks.engine().backend().notifications().is_some(), listens, "{query}");
    }
}

#[test]
fn bad_addresses_are_refused_without_showing_the_password() {
    for url in [
        "",
        "canary",
        "mysql://u:canary@h/db",
        "postgres:///db",
        "postgres://u:canary@h/?sslmode=disable",
        "postgres://u:canary@h:99999/db?sslmode=disable",
        "postgres://u:12/canary@h/db",
        "postgres://u:canary@h/db",
        "postgres://u:canary@h/db?sslmode=prefer",
        "postgres://u:canary@localhost,h/db",
        "postgres://u:canary@localhost/db?hostaddr=10.0.0.1",
        "postgres://u:canary@localhost/db?listen=h:5432",
        "postgres://u:canary@localhost/db?sslrootcert=/x",
        "postgres://u:canary@h/db?sslmode=disable&schema=a\"b",
        "postgres://u:canary@h/db?sslmode=disable&schema=Locks",
        "postgres://u:canary@h/db?sslmode=disable&schema=a&schema=b",
        "postgres://u:canary@h/db?sslmode=disable&namespace=",
        "postgres://u:canary@h/db?sslmode=disable&pool_max=0",
        "postgres://u:canary@h/db?sslmode=disable&pool_max=1001",
        "postgres://u:canary@h/db?sslmode=disable&group_commit=1",
        "postgres://u:canary@h/db?sslmode=disable&listen=a/b",
        "postgres://u:canary@h/db?sslmode=disable&listen=a:b:c",
        "postgres://u:canary@h/db?sslmode=disable&no_such_parameter=1",
        "postgres://u:canary@h/db?sslmode=require&sslrootcert=/no/such/file",
    ] {
        let error = refused(url);
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{url}");
        assert!(!format!("{} {error:?}", shown(&error)).contains(":canary"), "{error:?}");
    }
}

#[test]
async fn a_password_needs_no_tls_where_it_passes_no_network() {
    for url in [
        "postgres://u:canary@localhost:1/db",
        "postgres://u:canary@127.0.0.1:1/db?sslmode=prefer",
        "postgres://u:canary@localhost:1,127.0.0.2:1/db",
        "postgres://u:canary@db.example:1/db?hostaddr=127.0.0.1",
        "postgres://u:canary@%2Fno%2Fsuch%2Fsocket/db",
    ] {
        let error = Postgres::connect(url).await.map(drop).unwrap_err();
        assert_ne!(error.kind(), ErrorKind::InvalidOptions, "{url}: {error}");
    }
}

#[cfg(not(feature = "tls-rustls"))]
#[test]
fn tls_without_the_feature_is_an_error_that_names_it() {
    for query in ["sslmode=require", "sslmode=verify-full", "sslrootcert=/x"] {
        let error = refused(&format!("postgres://u@h/db?{query}"));
        assert!(error.to_string().contains("tls-rustls"), "{error}");
    }
}

#[test]
async fn whatever_the_url_is_it_is_understood_or_refused_and_its_password_is_not_shown() {
    corpus_of_urls(include_str!("../../corpus/urls.txt"), |url| match Postgres::connect(url).now_or_never() {
        // What connects ends with this test, which never waits for it: nothing is sent.
        None => String::new(),
        Some(Ok(locks)) => panic!("{locks:?} is connected"),
        Some(Err(error)) => {
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{url}: {error}");
            format!("{} {error:?}", shown(&error))
        }
    });
}

#[test]
async fn why_there_is_no_connection_is_said_and_where() {
    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hangs_up = deaf.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((client, _)) = deaf.accept().await {
            drop(client);
        }
    });
    for (place, why) in [
        ("127.0.0.1:1", "nothing listens there"),
        ("[::1]:1", "postgres://[::1]:1"),
        ("no-such-host.invalid", "the host name cannot be resolved"),
        (&hangs_up, "the connection broke; is it a PostgreSQL server"),
    ] {
        let url = format!("postgres://u@{place}/db?sslmode=disable");
        let error = Postgres::connect(&url).await.map(drop).unwrap_err();
        assert!(shown(&error).contains(why), "{place}: {}", shown(&error));
    }
}

#[test(server)]
async fn what_the_builder_says_wins_over_the_url() {
    let server = server(&[]).await;
    let url = format!("{}&namespace=theirs", server.url_of("leasehold", "p-canary"));
    for handoff in [LocalHandoff::new().age(Duration::from_secs(5)), LocalHandoff::off()] {
        let builder = Postgres::builder().url(&url);
        let builder = builder.namespace("ours").group_commit(false).local_handoff(handoff);
        let shown = format!("{builder:?}");
        assert!(shown.contains("ours") && shown.contains("false") && !shown.contains("canary"), "{shown}");
        let locks = builder.connect().await.unwrap();
        let shown = format!("{locks:?}");
        assert!(shown.contains("127.0.0.1") && !shown.contains("canary"), "{shown}");
        let held = locks.lock("k").await.unwrap();
        let mut next = Box::pin(locks.lock("k"));
        assert!((&mut next).now_or_never().is_none());
        let before = held.fencing_token().unwrap().get();
        held.release().await.unwrap();
        let next = next.await.unwrap().fencing_token().unwrap().get();
        assert_eq!(next == before + 1, handoff != LocalHandoff::off(), "{before} {next}");
        assert_eq!(number(&server.url(), "SELECT count(*) FROM leasehold.locks WHERE name = 'ours\\000k'").await, 1);
    }
}

#[test]
fn names_that_could_be_more_than_a_name_are_refused() {
    let script = |name: &str| Postgres::builder().schema(name).script();
    for bad in ["", "a\"b", "a'b", "a b", "a.b", "A", "ä", "a\0", &"x".repeat(49)] {
        assert_eq!(script(bad).unwrap_err().kind(), ErrorKind::InvalidOptions, "{bad:?}");
    }
    for good in ["leasehold", "l_1", "user", &"x".repeat(48)] {
        let script = script(good).unwrap();
        assert!(
            script.contains(&format!("CREATE TABLE IF NOT EXISTS \"{good}\".locks")) && !script.contains("{schema}"),
            "{script}"
        );
    }
}
