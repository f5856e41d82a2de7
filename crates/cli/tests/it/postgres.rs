//! A PostgreSQL: its tables.

use leasehold::postgres::tokio_postgres::{NoTls, connect};
use leasehold_testkit::postgres::Server;
use leasehold_testkit::{eventually_some, test};

use crate::support::{Place, wait_for};

/// Runs statements past everything that the program does.
pub(crate) fn sql(server: &Server, statements: &str) {
    wait_for(async {
        let (client, connection) = connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(statements).await.unwrap();
    });
}

#[test]
fn its_tables_are_made_once_and_lose_idle_rows() {
    let server = wait_for(Server::needed(&[]));
    let place = Place::at(server.url());
    place.run("run -n k true").is(78, &["leasehold migrate"]);
    for _ in 0..2 {
        place.run("migrate").is(0, &[]).prints("the tables of postgres exist\n");
    }
    assert!(place.is_free("a") && place.is_free("b"));
    let gc = |age: &str| {
        let done = place.run(&format!("gc --older-than {age}"));
        done.is(0, &[]).output.strip_suffix(" idle rows deleted\n").unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(gc("1h"), 0);
    // Less than 5 seconds counts as 5 seconds.
    let mut deleted = 0;
    eventually_some("the idle rows are gone", || {
        deleted += gc("1s");
        (deleted == 2).then_some(())
    });
    assert_eq!(place.code("heal"), 64, "one server is no majority");
}
