//! A PostgreSQL: its tables, and what it refuses.

use leasehold::postgres::tokio_postgres::{NoTls, connect};
use leasehold_testkit::postgres::Server;
use leasehold_testkit::{eventually_some, test};

use crate::support::{Place, text};

fn wait_for<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Runs statements past everything that the program does.
pub(crate) fn sql(server: &Server, statements: &str) {
    wait_for(async {
        let (client, connection) = connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(statements).await.unwrap();
    });
}

/// What a command says on its output, and its exit code.
fn said(url: &str, args: &[&str]) -> (Option<i32>, String) {
    let output = Place::at(url).run(args);
    (output.status.code(), text(&output.stdout))
}

#[test]
fn its_tables_are_made_once_and_lose_idle_rows() {
    let server = wait_for(Server::needed(&[]));
    let place = Place::at(server.url());
    let bare = place.run(&["run", "-n", "k", "--", "true"]);
    assert_eq!(bare.status.code(), Some(78), "{bare:?}");
    assert!(text(&bare.stderr).contains("leasehold migrate"), "{bare:?}");
    for _ in 0..2 {
        assert_eq!(said(&server.url(), &["migrate"]), (Some(0), "the tables of postgres exist\n".to_owned()));
    }
    for key in ["a", "b"] {
        assert_eq!(place.code(&["run", "-n", key, "--", "true"]), 0);
    }
    let gc = |age: &str| {
        let (code, out) = said(&server.url(), &["gc", "--older-than", age]);
        assert_eq!(code, Some(0), "{out}");
        out.strip_suffix(" idle rows deleted\n").unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(gc("1h"), 0);
    // Less than 5 seconds counts as 5 seconds.
    let mut deleted = 0;
    eventually_some("the idle rows are gone", || {
        deleted += gc("1s");
        (deleted == 2).then_some(())
    });
    assert_eq!(place.code(&["heal"]), 64, "one server is no majority");
}

#[test]
fn what_cannot_be_connected_to_has_its_exit_code() {
    let server = wait_for(Server::needed(&[]));
    let absent = format!("postgres://leasehold@127.0.0.1:{}/absent", server.port());
    for (url, code, why) in [
        ("postgres://u@127.0.0.1:1/x".to_owned(), 69, "is the server running"),
        (absent, 78, "create the database first"),
        (format!("{}?nonsense=1", server.url()), 64, "nonsense"),
        // A password that would travel in clear text.
        ("postgres://u:p-secret@db.example/x".to_owned(), 64, "sslmode"),
    ] {
        let refused = Place::at(&url).run(&["run", "-n", "k", "--", "true"]);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{url}: {told}");
        assert!(told.contains(why) && !told.contains("p-secret"), "{url}: {told}");
    }
}
