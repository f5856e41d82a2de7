//! What becomes of a statement whose connection breaks, that the server undoes, or that reaches a server that is not the one to ask.

use std::pin::pin;
use std::time::Duration;

use leasehold_core::{Error, ErrorKind};
use leasehold_mysql::{Columns, ConnectionSettings, Params, Pool, Sessions, Step, named};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::{Deadline, PATIENCE, Proxy, eventually, test};
use mysql_async::prelude::Queryable;
use mysql_async::{Opts, OptsBuilder};

const ADD: &str = "UPDATE t SET n = n + 1";
/// Takes as long as the rows say.
const SLEEPS: &str = "UPDATE t SET n = n + 1 WHERE SLEEP(pause) = 0";

/// How many of these run.
const RUNNING: &str = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'u' AND info LIKE '%SLEEP%'";

/// A server with a table that has a row for each of the keys 1 to 3, and the sessions of a user whom `read_only` binds,
/// behind a proxy.
struct Database {
    server: Server,
    address: Proxy,
    sessions: Sessions,
}

impl Database {
    async fn new() -> Self {
        let server = prepared().await;
        let address = Proxy::start(server.port());
        // One connection, so that the next reply is the one to the next statement.
        let url = format!("{}&pool_max=1", server.url_of("u", ""));
        let sessions = Sessions::at(&address.url(&url)).unwrap();
        Self { server, address, sessions }
    }

    async fn add(&self) -> Result<leasehold_mysql::Reply, Error> {
        self.sessions.run(Step::new("test", ADD), Params::Empty).await
    }
}

async fn prepared() -> Server {
    let server = Server::needed(&[]).await;
    server
        .sql(&[
            "CREATE TABLE leasehold.t (k INT PRIMARY KEY, n INT NOT NULL, pause INT NOT NULL)",
            "INSERT INTO leasehold.t VALUES (1, 0, 0), (2, 0, 0), (3, 0, 0)",
            "CREATE USER u@'%'",
            "GRANT SELECT, INSERT, UPDATE ON leasehold.* TO u@'%'",
        ])
        .await;
    server
}

/// How often the rows were changed.
async fn changes(server: &Server) -> u64 {
    server.number("SELECT MAX(n) FROM leasehold.t").await
}

async fn is_running(server: &Server) -> bool {
    server.number(RUNNING).await > 0
}

/// The server refuses every change of the table with this code.
async fn refuse(server: &Server, code: u16) {
    let trigger = format!(
        "CREATE OR REPLACE TRIGGER leasehold.refuse BEFORE UPDATE ON leasehold.t FOR EACH ROW \
         SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = {code}"
    );
    server.sql(&[&trigger]).await;
}

fn is_told_twice(error: &Error) -> bool {
    error.to_string().contains("the connection broke, and then")
}

/// Tries until the session of a broken statement was ended within the half second that this may take.
async fn until_ended<T>(mut try_once: impl AsyncFnMut() -> Result<T, Error>) -> T {
    let deadline = Deadline::after(PATIENCE);
    loop {
        match try_once().await {
            Ok(done) => return done,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
                assert!(!deadline.is_over(), "{error}");
            }
        }
    }
}

#[test(server)]
async fn a_statement_whose_connection_broke_is_sent_again_if_it_is_repeatable() {
    let database = Database::new().await;
    assert!(!database.add().await.unwrap().repeated);
    database.address.drop_next_reply();
    let error = database.add().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    assert!(!is_told_twice(&error), "{error}");
    assert_eq!(changes(&database.server).await, 2, "it was sent once");

    until_ended(async || {
        // The session knows the statement, so that the next reply is the one to its execution.
        database.add().await.unwrap();
        let before = changes(&database.server).await;
        database.address.drop_next_reply();
        let reply = database.sessions.run(Step::new("test", ADD).repeatable(), Params::Empty).await?;
        assert!(reply.repeated);
        assert_eq!((reply.affected, changes(&database.server).await), (3, before + 2));
        Ok(())
    })
    .await;
    assert!(!database.sessions.run(Step::new("test", ADD).repeatable(), Params::Empty).await.unwrap().repeated);
}

#[test(server)]
async fn what_a_second_sending_meets_does_not_hide_that_the_first_may_have_been_applied() {
    let database = Database::new().await;
    let deadline = Deadline::after(PATIENCE);
    for number in (10_u64..).step_by(2) {
        let insert = async |number: u64| {
            let step = Step::new("test", "INSERT INTO t VALUES (:k, 0, 0)").repeatable();
            database.sessions.run(step, named([("k", number.into())])).await
        };
        insert(number).await.unwrap();
        database.address.drop_next_reply();
        // The second sending meets the row of the first.
        let error = insert(number + 1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
        if is_told_twice(&error) {
            assert!(error.to_string().contains("Duplicate"), "{error}");
            break;
        }
        assert!(!deadline.is_over(), "{error}");
    }
    // Where the session cannot be ended, there is no second sending to tell of.
    let database = Database::new().await;
    database.add().await.unwrap();
    database.address.drop_next_reply();
    database.address.refuse(true);
    let error = database.sessions.run(Step::new("test", ADD).repeatable(), Params::Empty).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    assert!(!is_told_twice(&error), "{error}");
}

#[test(multi_thread, server)]
async fn a_statement_is_sent_again_once_its_first_sending_is_over() {
    let database = Database::new().await;
    database.server.sql(&["UPDATE leasehold.t SET pause = IF(k = 1, 8, 0)"]).await;
    until_ended(async || {
        eventually("nothing of an earlier attempt runs", async || !is_running(&database.server).await).await;
        let step = Step::new("test", SLEEPS).repeatable().limit(PATIENCE * 60);
        let mut run = pin!(database.sessions.run(step, Params::Empty));
        tokio::select! {
            answer = run.as_mut() => panic!("it sleeps for a while: {answer:?}"),
            () = eventually("it is under way", async || is_running(&database.server).await) => {}
        }
        database.address.cut();
        let mut observer = database.server.session().await.unwrap();
        let watch = async {
            loop {
                let running: Option<u64> = observer.query_first(RUNNING).await.unwrap();
                assert!(running <= Some(1), "{running:?} at once");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            answer = run.as_mut() => answer.map(|reply| assert!(reply.repeated)),
            () = watch => unreachable!("it goes on"),
        }
    })
    .await;
}

#[test(server)]
async fn a_statement_that_the_server_keeps_undoing_is_sent_for_a_second_at_growing_pauses() {
    let database = Database::new().await;
    database
        .server
        .sql(&[
            "CREATE TABLE leasehold.tries (n INT) ENGINE=Aria",
            "CREATE TRIGGER leasehold.undo BEFORE UPDATE ON leasehold.t FOR EACH ROW BEGIN \
             INSERT INTO leasehold.tries VALUES (1); SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213; END",
        ])
        .await;
    let error = database.add().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    // 2, 4, 8, 16, 32 and then 50 ms, or half of each.
    let tries = database.server.number("SELECT COUNT(*) FROM leasehold.tries").await;
    assert!((2..60).contains(&tries), "{tries} sendings");
}

#[test(server)]
async fn a_statement_follows_the_address_to_the_server_that_takes_writes() {
    let database = Database::new().await;
    let (old, new) = (&database.server, prepared().await);
    database.add().await.unwrap();
    old.sql(&["SET GLOBAL read_only = 1"]).await;
    let before = old.status("Com_stmt_execute").await;
    let error = database.add().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("read-only"), "{error}");
    assert_eq!(old.status("Com_stmt_execute").await - before, 2, "it looks once whether the address leads elsewhere");
    assert!(run_batch(&database, ADD, "SELECT 1", None, false).await.unwrap().is_none(), "nothing was applied");

    database.address.redirect(new.port());
    database.add().await.unwrap();
    assert_eq!((changes(old).await, changes(&new).await), (1, 1));
    let sessions = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'u'";
    eventually("no session stays behind", async || old.number(sessions).await == 0).await;
}

#[test(server)]
async fn a_statement_that_broke_is_not_sent_to_another_server() {
    let database = Database::new().await;
    let (old, new) = (&database.server, prepared().await);
    old.sql(&["UPDATE leasehold.t SET pause = 3600"]).await;
    let step = Step::new("test", SLEEPS).repeatable().limit(PATIENCE * 60);
    let mut run = pin!(database.sessions.run(step, Params::Empty));
    tokio::select! {
        answer = run.as_mut() => panic!("it sleeps for an hour: {answer:?}"),
        () = eventually("it is under way", async || is_running(old).await) => {}
    }
    database.address.redirect(new.port());
    database.address.cut();
    let error = run.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
    assert!(!is_told_twice(&error), "{error}");
    assert_eq!(changes(&new).await, 0);
    // What comes later goes there.
    database.add().await.unwrap();
    assert_eq!(changes(&new).await, 1);
}

async fn run_batch(
    database: &Database,
    statement: &str,
    outcome: &str,
    all: Option<u64>,
    repeatable: bool,
) -> Result<Option<leasehold_mysql::Reply>, Error> {
    let step = Step::new("test", statement).limit(Duration::from_secs(5));
    let step = if repeatable { step.repeatable() } else { step };
    database.sessions.run_batch(step, Params::Empty, (outcome, Params::Empty), all).await.map(Result::ok)
}

#[test(server)]
async fn what_a_batch_changed_is_asked_for_in_its_session_unless_it_is_all() {
    const LOOK: &str = "SELECT k, @@pseudo_thread_id = CONNECTION_ID() FROM t WHERE k > 1";
    let database = Database::new().await;
    for (all, rows) in [(None, 2), (Some(2), 2), (Some(4), 2), (Some(3), 0)] {
        let reply = run_batch(&database, ADD, LOOK, all, false).await.unwrap().unwrap();
        assert_eq!((reply.affected, reply.rows.len(), reply.repeated), (3, rows, false), "{all:?}");
        if let Some(row) = reply.rows.first() {
            assert_eq!(Columns::of(row, "test").get::<u64>().unwrap(), 2);
        }
    }
    assert_eq!(changes(&database.server).await, 4);
}

#[test(server)]
async fn a_batch_is_taken_apart_only_if_it_was_not_applied_or_may_be_applied_again() {
    const FAILS: &str = "SELECT k FROM nowhere";
    let database = Database::new().await;
    // Applied, and nobody can tell to which of the rows.
    let error = run_batch(&database, ADD, FAILS, None, false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
    assert!(run_batch(&database, ADD, FAILS, None, true).await.unwrap().is_none());
    assert_eq!(changes(&database.server).await, 2);
    // The connection broke amid the statement.
    database.address.drop_next_reply();
    let error = run_batch(&database, ADD, FAILS, None, false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
    assert_eq!(changes(&database.server).await, 3);
    until_ended(async || {
        database.add().await.unwrap();
        database.address.drop_next_reply();
        let reply = run_batch(&database, ADD, FAILS, None, true).await?;
        assert!(reply.is_none(), "{reply:?}");
        Ok(())
    })
    .await;
    // The answer is missing, to the statement or to the query.
    database.server.sql(&["UPDATE leasehold.t SET n = 0, pause = 3600"]).await;
    for (statement, look) in [(SLEEPS, "SELECT 1"), (ADD, "SELECT SLEEP(3600)")] {
        let error = run_batch(&database, statement, look, None, false).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
    }
    // Undone or refused.
    refuse(&database.server, 1205).await;
    assert!(run_batch(&database, ADD, "SELECT 1", None, false).await.unwrap().is_none());
    refuse(&database.server, 1644).await;
    let error = run_batch(&database, ADD, "SELECT 1", None, true).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
}

#[test(server)]
async fn a_pool_whose_connections_left_the_address_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("usual.sock").display().to_string();
    let server = Server::needed(&[&format!("--socket={path}")]).await;
    let opened = async |opts: OptsBuilder| {
        let opened = ConnectionSettings::default().pool(Pool::new(opts)).open("t").await?;
        opened.sessions.run(Step::new("test", "DO 1"), Params::Empty).await
    };
    let opts = || OptsBuilder::from_opts(Opts::from_url(&server.url()).unwrap());
    let error = opened(opts()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
    assert!(error.to_string().contains("prefer_socket(false)"), "{error}");
    opened(opts().prefer_socket(false)).await.unwrap();
    // Who asks for the socket gets it.
    opened(opts().prefer_socket(false).socket(Some(path))).await.unwrap();
}
