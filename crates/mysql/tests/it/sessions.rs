//! Statements, connections and closing where the server is slow, silent or out of connections.

use std::time::Duration;

use leasehold_core::ErrorKind;
use leasehold_mysql::{Columns, Params, Sessions, Step, named};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::{Proxy, eventually, test};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

#[test(server)]
async fn a_statement_that_was_given_up_is_ended_in_the_server() {
    let server = Server::needed(&[]).await;
    let sessions = Sessions::at(&server.url()).unwrap();
    let sleeps = Step::new("test", "DO SLEEP(3600)").limit(Duration::from_millis(200));
    let error = sessions.run(sleeps, Params::Empty).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    let running = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'DO SLEEP%'";
    eventually("it is ended", async || server.number(running).await == 0).await;
    sessions.close().await;
}

#[test(server)]
async fn an_exhausted_pool_is_an_error_after_a_bounded_wait() {
    let server = Server::needed(&[]).await;
    let url = format!("{}&pool_max=1", server.url());
    let sessions = Sessions::at(&url).unwrap();
    let busy = sessions.run(Step::new("test", "DO SLEEP(3600)").limit(Duration::from_secs(3600)), Params::Empty);
    let waits = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let common = sessions.run(Step::new("test", "DO 1"), Params::Empty).await;
        // Renewals have connections of their own.
        let reserved = sessions.run(Step::new("test", "DO 1").reserved(), Params::Empty).await;
        (common, reserved)
    };
    let (common, reserved) = tokio::select! {
        done = busy => panic!("it slept for an hour: {done:?}"),
        answers = waits => answers,
    };
    let error = common.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("pool_max"), "{error}");
    reserved.unwrap();
}

#[test(multi_thread, server)]
async fn a_connection_that_falls_silent_within_an_answer_keeps_no_place_in_the_pool() {
    let server = Server::needed(&[]).await;
    let address = Proxy::start(server.port());
    let url = format!("{}&pool_max=1", address.url(&server.url()));
    let sessions = Sessions::at(&url).unwrap();
    // A row every 20 ms, each so large that the server sends it at once.
    let slow = "SELECT REPEAT('x', 100000), SLEEP(0.02) FROM leasehold.seq_1_to_1000";
    let step = Step::new("test", slow).limit(Duration::from_secs(1));
    let reading = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.run(step, Params::Empty).await.map(|_| ()) }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    address.drop_replies();
    let error = reading.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
    sessions.run(Step::new("test", "DO 1"), Params::Empty).await.unwrap();
    sessions.close().await;
}

/// The statement whose caller leaves is answered before it leaves, and the caller does not look.
#[test(server)]
async fn an_answer_whose_caller_has_left_is_nobody_elses() {
    let server = Server::needed(&[]).await;
    server.sql(&["CREATE TABLE leasehold.t (n INT)", "INSERT INTO leasehold.t VALUES (0)"]).await;
    let sessions = Sessions::at(&format!("{}&pool_max=1", server.url())).unwrap();
    let asks = |number: u64| {
        let step = Step::new("test", "UPDATE t SET n = LAST_INSERT_ID(:number)");
        sessions.run(step, named([("number", number.into())]))
    };
    asks(1).await.unwrap();
    for round in 2..10 {
        // The connection is back in the pool, so that the statement leaves at once.
        tokio::time::sleep(Duration::from_millis(30)).await;
        let mut left = asks(round * 10);
        tokio::select! {
            biased;
            answer = &mut left => panic!("it was not waited for: {answer:?}"),
            () = std::future::ready(()) => {}
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
        drop(left);
        for next in 1..4 {
            assert_eq!(asks(round * 10 + next).await.unwrap().id, round * 10 + next, "the answer to another statement");
        }
    }
    sessions.close().await;
}

/// A session of another user's with this id.
async fn stranger(server: &Server, id: u32) -> Conn {
    loop {
        let session = server.session().await.unwrap();
        assert!(session.id() <= id, "the id {id} is gone");
        if session.id() == id {
            return session;
        }
    }
}

#[test(multi_thread, server)]
async fn a_session_of_another_server_is_not_ended() {
    let old = Server::needed(&[]).await;
    let new = Server::needed(&[]).await;
    // So that the ids of the old one are free in the new one.
    for _ in 0..20 {
        drop(old.session().await.unwrap());
    }
    let address = Proxy::start(old.port());
    let sessions = Sessions::at(&address.url(&old.url())).unwrap();
    let reply = sessions.run(Step::new("test", "SELECT CONNECTION_ID()"), Params::Empty).await.unwrap();
    let id: u32 = Columns::of(&reply.rows[0], "test").get().unwrap();
    let mut stranger = stranger(&new, id).await;
    let sleeps = Step::new("test", "DO SLEEP(3600)").limit(Duration::from_millis(300));
    address.redirect(new.port());
    let error = sessions.run(sleeps, Params::Empty).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    // The killing is done by now, and would be noticed by the next statement.
    let still_there: Result<Option<u32>, _> = stranger.query_first("SELECT CONNECTION_ID()").await;
    assert_eq!(still_there.unwrap(), Some(id), "somebody else's session was ended");
}
