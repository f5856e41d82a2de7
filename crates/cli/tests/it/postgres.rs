//! A PostgreSQL: its tables.

use leasehold::postgres::tokio_postgres::{NoTls, connect};
use leasehold_testkit::postgres::Server;
use leasehold_testkit::test;

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
fn its_tables_are_made_once_and_collected() {
    let server = wait_for(Server::needed(&[]));
    let place = Place::at(server.url());
    place.run("run -n k true").is(78, &["leasehold migrate"]);
    for _ in 0..2 {
        place.run("migrate").is(0, &[]).prints("the tables of postgres exist\n");
    }
    assert!(place.is_free("k"));
    place.run("gc").is(0, &[]).prints("0 idle rows deleted\n");
    assert_eq!(place.code("heal"), 64, "one server is no majority");
}
