//! Tables that are created.

use leasehold_mysql::{Column, ColumnType, Sessions, TableName, TableSchema};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::test;

const NAME: Column = Column { name: "name", kind: ColumnType::Bytes(320), optional: false };
const SHAPE: TableSchema =
    TableSchema { name: "leasehold shape", version: 2, columns: &[NAME], primary_key: &["name"] };

#[test(multi_thread, server)]
async fn of_programs_that_migrate_at_the_same_time_one_makes_the_table() {
    let server = Server::needed(&[]).await;
    let (sessions, table) = (Sessions::at(&server.url()).unwrap(), TableName::new("t").unwrap());
    let migrate = || SHAPE.migrate(&sessions, &table);
    let all = tokio::join!(migrate(), migrate(), migrate());
    [all.0, all.1, all.2].into_iter().for_each(Result::unwrap);
    SHAPE.check(&sessions, &table).await.unwrap();
}
