use std::time::Duration;

use leasehold_postgres::{
    Admin, Backed, Backend, Claim, ErrorKind, Health, KIND, LockKey, LockerExt, Mode, Postgres, RwLockerExt,
};
use leasehold_testkit::postgres::Server;
use leasehold_testkit::{crowd_of_both, eventually, readers_life, test, whole_life};

use crate::sql::{clients, grants, number, patient, server, session, sql};

#[test(multi_thread, server)]
async fn every_default_of_the_server_is_right() {
    let server = server(&[]).await;
    let defaults = [
        "default_transaction_isolation = 'read committed'",
        "default_transaction_isolation = 'repeatable read'",
        "default_transaction_isolation = 'serializable'",
        "timezone = 'Pacific/Chatham'",
        "datestyle = 'German'",
        "intervalstyle = 'sql_standard'",
        "synchronous_commit = off",
        "extra_float_digits = 0",
    ];
    for default in defaults {
        sql(&server.url(), &[&format!("ALTER ROLE leasehold SET {default}")]).await;
        let clients = clients(&server.url()).await;
        crowd_of_both(&clients, default, 8, 5).await;
        all_of_life(&clients, &format!("life under {default}")).await;
    }
}

/// All that can happen to a key.
async fn all_of_life([ours, theirs]: &[Postgres; 2], name: &str) {
    whole_life(ours, theirs, name).await;
    readers_life(ours, theirs, name).await;
}

#[test(multi_thread, server)]
async fn a_database_of_another_encoding_keeps_names_and_texts() {
    let server = Server::needed(&[]).await;
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let name = encoding.to_lowercase();
        let create = format!("CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        sql(&server.url(), &[&create]).await;
        let url = format!("postgres://leasehold@127.0.0.1:{}/{name}", server.port());
        Postgres::migrate(&url).await.unwrap();
        let locks = Postgres::connect(&url).await.unwrap();
        let key = LockKey::new("日本 é\0").unwrap();
        let guard = locks.acquire(&key, &patient().label("пример\0")).await.unwrap().unwrap();
        let seen = locks.list("日", None).await.unwrap();
        assert_eq!((&seen.keys[0].key, seen.keys[0].holders[0].label.as_deref()), (&key, Some("пример\0")));
        assert!(locks.try_lock("日本 e\u{301}\0").await.unwrap().is_some(), "decomposed, it is another key");
        guard.release().await.unwrap();
    }
}

#[test(multi_thread, server)]
async fn the_rights_that_the_readme_names_suffice() {
    let server = server(&[]).await;
    sql(&server.url(), &["CREATE ROLE app LOGIN PASSWORD 'p/w'", "CREATE ROLE nobody LOGIN", grants()]).await;
    let url = server.url_of("app", "p%2Fw");
    let clients = clients(&url).await;
    all_of_life(&clients, "k").await;
    let refused = clients[0].gc(Duration::ZERO).await;
    // The rights are looked at before the rows.
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(error.to_string().contains("the rights in"), "{error}");
    sql(&server.url(), &["GRANT DELETE ON leasehold.locks TO app"]).await;
    clients[0].gc(Duration::ZERO).await.unwrap();

    for refused in [
        Postgres::connect(&server.url_of("nobody", "")).await.map(drop).unwrap_err(),
        Postgres::builder().url(&url).schema("other").migrate().await.unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::Backend);
        assert!(refused.to_string().contains("check user, password, database, and the rights"), "{refused}");
        assert!(!format!("{refused:?}").contains("p/w"), "{refused:?}");
    }
}

#[test(multi_thread, server)]
async fn what_is_missing_is_said_and_what_to_do() {
    let server = Server::needed(&[]).await;
    let refused = async |url: String| Postgres::connect(&url).await.map(drop).unwrap_err();
    let error = refused(server.url()).await;
    assert_eq!((error.kind(), error.backend()), (ErrorKind::Backend, Some("postgres")), "{error}");
    assert!(error.to_string().contains("leasehold migrate"), "{error}");
    let error = refused(format!("postgres://leasehold@127.0.0.1:{}/absent", server.port())).await;
    assert!(error.to_string().contains("create the database first"), "{error}");
    Postgres::migrate(&server.url()).await.unwrap();
    sql(
        &server.url(),
        &["CREATE OR REPLACE FUNCTION leasehold.version() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 7'"],
    )
    .await;
    for error in [refused(server.url()).await, Postgres::migrate(&server.url()).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains("its version is 7, and this program needs 1: run a program of"), "{error}");
    }
    let absent = refused("postgres://u@127.0.0.1:1/x".to_owned()).await;
    assert_eq!(absent.kind(), ErrorKind::Unavailable, "{absent}");
    // Two that migrate at a time, and a script of one's own, make one schema.
    let script = Postgres::builder().schema("mine").script().unwrap();
    let url = server.url() + "?schema=mine";
    let (one, other, ()) =
        tokio::join!(Postgres::migrate(&url), Postgres::migrate(&url), async { sql(&server.url(), &[&script]).await });
    ((), ()) = (one.unwrap(), other.unwrap());
    let locks = Postgres::connect(&url).await.unwrap();
    locks.lock("k").await.unwrap().release().await.unwrap();
}

/// The names of the rows that stay come first.
#[test(multi_thread, server)]
async fn rows_that_stay_are_read_once_however_many_go() {
    const ROWS: i64 = 10_000;
    let server = server(&[]).await;
    let fill = format!(
        "INSERT INTO leasehold.locks (name, epoch, owner, expires_at) \
         SELECT 'leasehold\\000'::bytea || convert_to(lpad(n::text, 8, '0'), 'UTF8'), 1, '\\x01'::bytea, \
         CASE WHEN n <= {ROWS} THEN now() + interval '1 hour' ELSE '-infinity' END FROM generate_series(1, 2 * {ROWS}) AS n"
    );
    sql(&server.url(), &[&fill, "VACUUM ANALYZE leasehold.locks"]).await;
    let read = async || {
        let idle = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'leasehold'";
        // A session tells what it has read when it ends.
        eventually("they have ended", async || number(&server.url(), idle).await == 0).await;
        let read = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'locks'";
        number(&server.url(), read).await
    };
    let before = read().await;
    // As where the disk is slow: longer than a lock may take.
    let slow = "CREATE SEQUENCE deletes; CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                IF nextval('deletes') = 1 THEN PERFORM pg_sleep(3); END IF; RETURN NULL; END $$; \
                CREATE TRIGGER slow AFTER DELETE ON leasehold.locks FOR EACH STATEMENT EXECUTE FUNCTION slow()";
    sql(&server.url(), &[slow]).await;
    let locks = Postgres::connect(&server.url()).await.unwrap();
    assert_eq!(locks.gc(Duration::ZERO).await.unwrap(), u64::try_from(ROWS).unwrap());
    locks.close().await;
    let read = read().await - before;
    // Each once to look at it; and once more for those that go.
    assert!((ROWS..4 * ROWS).contains(&read), "{read} rows were read");

    // A listing has several pages.
    let locks = Postgres::connect(&server.url()).await.unwrap();
    let (mut listed, mut after) = (0, None);
    loop {
        let page = locks.list("", after.as_ref()).await.unwrap();
        listed += i64::try_from(page.keys.len()).unwrap();
        let Some(next) = page.next else { break };
        after = Some(next);
    }
    assert_eq!(listed, ROWS);
}

#[test(multi_thread, server)]
async fn collected_rows_do_not_take_tokens_back() {
    let server = server(&[]).await;
    let [locks, _] = clients(&server.url()).await;
    let guard = locks.lock("k").await.unwrap();
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let held = locks.read("held").await.unwrap();
    eventually("the row is collected", async || locks.gc(Duration::ZERO).await.unwrap() == 1).await;
    assert_eq!(number(&server.url(), "SELECT count(*) FROM leasehold.locks").await, 1);
    assert!(held.is_held() && locks.try_lock("held").await.unwrap().is_none());
    assert!(locks.lock("k").await.unwrap().fencing_token() > token);
}

#[test(multi_thread, server)]
async fn a_grant_waits_for_the_disk_and_a_refusal_does_not() {
    let server = server(&["synchronous_commit=off"]).await;
    let client = session(&server.url()).await;
    let claim = "SELECT granted IS NOT NULL FROM leasehold.claim('c', ARRAY['k'::bytea], ARRAY[$1::bytea], '{f}', '{t}', \
                 '{60000000}', '{NULL}', '{NULL}')";
    for (owner, granted, commit) in [(b"one", true, "local"), (b"two", false, "off"), (b"one", true, "local")] {
        client.batch_execute("BEGIN").await.unwrap();
        let row = client.query_one(claim, &[&owner.as_slice()]).await.unwrap();
        let setting = client.query_one("SHOW synchronous_commit", &[]).await.unwrap();
        client.batch_execute("COMMIT").await.unwrap();
        assert_eq!((row.get::<_, bool>(0), setting.get::<_, &str>(0)), (granted, commit), "{owner:?}");
    }
    // Keys that are free, one or several, are taken by another statement than new ones.
    let size = "ARRAY[cardinality($1::bytea[])]";
    let each = |value: &str| format!("array_fill({value}, {size})");
    let owners = each("'one'::bytea");
    let some =
        [each("false"), each("true"), each("60000000::bigint"), each("NULL::bytea"), each("NULL::bytea")].join(", ");
    let claim = format!("SELECT count(granted) FROM leasehold.claim('c', $1, {owners}, {some})");
    let release = format!("SELECT sum(freed) FROM leasehold.release($1, {owners}) AS freed");
    for keys in [&[b"l".as_slice()][..], &[b"m", b"n"]] {
        let count = i64::try_from(keys.len()).unwrap();
        for _ in 0..2 {
            client.batch_execute("BEGIN").await.unwrap();
            let granted: i64 = client.query_one(&claim, &[&keys]).await.unwrap().get(0);
            let setting = client.query_one("SHOW synchronous_commit", &[]).await.unwrap();
            client.batch_execute("COMMIT").await.unwrap();
            assert_eq!((granted, setting.get::<_, &str>(0)), (count, "local"));
            let freed: i64 = client.query_one(&release, &[&keys]).await.unwrap().get(0);
            assert_eq!(freed, count);
        }
    }
    let [locks, _] = clients(&server.url()).await;
    let claim = Claim::new(&LockKey::new("k").unwrap(), Mode::Exclusive, Duration::from_secs(1));
    locks.engine().backend().try_acquire(&claim).await.unwrap();
}

#[test(multi_thread, server)]
async fn who_owns_the_schema_migrates_without_the_right_to_create_one() {
    let server = Server::needed(&[]).await;
    sql(&server.url(), &["CREATE ROLE owner LOGIN", "CREATE SCHEMA mine AUTHORIZATION owner"]).await;
    let url = server.url_of("owner", "");
    let refused = Postgres::builder().url(&url).schema("another").migrate().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Backend, "{refused}");
    for _ in 0..2 {
        Postgres::builder().url(&url).schema("mine").migrate().await.unwrap();
    }
    let locks = Postgres::builder().url(&url).schema("mine").connect().await.unwrap();
    locks.lock("k").await.unwrap().release().await.unwrap();
}

#[test(multi_thread, server)]
async fn marks_of_those_who_waited_end_although_the_clock_was_set_back() {
    let server = server(&[]).await;
    let [locks, _] = clients(&server.url()).await;
    locks.lock("k").await.unwrap().release().await.unwrap();
    // As an hour's jump back leaves them, when those who waited are gone.
    for mark in ["writer_waits_until", "readers_turn_until", "readers_wait_until"] {
        let ahead =
            format!("UPDATE leasehold.locks SET waiting = 'gone', {mark} = clock_timestamp() + interval '1 hour'");
        sql(&server.url(), &[&ahead]).await;
        let reader = locks.acquire_read(&LockKey::new("k").unwrap(), &patient()).await.unwrap();
        reader.expect("nobody holds it").release().await.unwrap();
        sql(&server.url(), &[&ahead]).await;
        let writer = locks.acquire(&LockKey::new("k").unwrap(), &patient()).await.unwrap();
        writer.expect("nobody holds it").release().await.unwrap();
    }
}

/// No server here is that old.
#[test(server)]
async fn a_server_before_13_is_too_old() {
    let server = server(&[]).await;
    sql(&server.url(), &["ALTER ROLE leasehold SET search_path = public, pg_catalog"]).await;
    for (version, health) in [("120022", Health::Error), ("130000", Health::Well), ("170002", Health::Well)] {
        let pretends = format!(
            "CREATE OR REPLACE FUNCTION public.current_setting(text) RETURNS text LANGUAGE sql AS \
             $$ SELECT CASE $1 WHEN 'server_version_num' THEN '{version}' ELSE pg_catalog.current_setting($1) END $$"
        );
        sql(&server.url(), &[&pretends]).await;
        let findings = KIND.examine.unwrap()(&server.url()).await.unwrap();
        let told = findings.iter().find(|finding| finding.id == "server-version").unwrap();
        assert_eq!(told.health, health, "{told:?}");
    }
}
