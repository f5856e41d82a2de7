//! Tables that are created, and recognized by what they are.

use leasehold_core::{Error, ErrorKind};
use leasehold_mysql::{Column, ColumnType, Sessions, TableName, TableSchema};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::test;

const NAME: Column = Column { name: "name", kind: ColumnType::Bytes(320), optional: false };
const OWNER: Column = Column { name: "owner", kind: ColumnType::Binary(16), optional: true };
const ENDS: Column = Column { name: "ends", kind: ColumnType::Moment, optional: false };
const WAITS: Column = Column { name: "waits", kind: ColumnType::Flag, optional: true };

const SHAPE: TableSchema = TableSchema {
    name: "leasehold shape",
    version: 2,
    columns: &[NAME, OWNER, ENDS, WAITS],
    primary_key: &["name", "owner"],
};

fn is_refused(answer: Result<(), Error>, words: &[&str]) {
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
}

#[test(server)]
async fn a_table_of_another_shape_is_refused_with_what_is_wrong() {
    let server = Server::needed(&[]).await;
    let sessions = Sessions::at(&server.url()).unwrap();
    let odd = TableName::new("odd").unwrap();
    is_refused(SHAPE.check(&sessions, &odd).await, &["no such table", "leasehold migrate"]);
    for (change, words) in [
        ("ENGINE=MyISAM", "its engine is MyISAM"),
        ("COMMENT='another shape 1'", "its comment is"),
        ("COMMENT='leasehold shape 1'", "it is of version 1, and this program needs version 2"),
        ("DROP COLUMN waits", "the column waits is missing"),
        ("MODIFY name VARBINARY(100) NOT NULL", "varbinary(100)"),
        ("MODIFY name BINARY(9) NOT NULL", "binary(9)"),
        ("MODIFY ends DATETIME NOT NULL", "datetime(0)"),
        ("MODIFY ends TIMESTAMP(6) NOT NULL", "timestamp(6)"),
        ("MODIFY waits BIGINT", "bigint"),
        ("DROP PRIMARY KEY, ADD INDEX (name)", "the primary key has to be (name, owner)"),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (name, owner, ends)", "the primary key has to be (name, owner)"),
    ] {
        server.sql(&["DROP TABLE IF EXISTS leasehold.odd"]).await;
        SHAPE.migrate(&sessions, &odd).await.unwrap();
        SHAPE.check(&sessions, &odd).await.unwrap();
        server.sql(&[&format!("ALTER TABLE leasehold.odd {change}")]).await;
        is_refused(SHAPE.check(&sessions, &odd).await, &[words, "leasehold migrate"]);
    }
}

#[test(multi_thread, server)]
async fn of_programs_that_migrate_at_the_same_time_one_makes_the_table() {
    let server = Server::needed(&[]).await;
    let (sessions, table) = (Sessions::at(&server.url()).unwrap(), TableName::new("t").unwrap());
    let migrate = || SHAPE.migrate(&sessions, &table);
    let all = tokio::join!(migrate(), migrate(), migrate());
    [all.0, all.1, all.2].into_iter().for_each(Result::unwrap);
    SHAPE.check(&sessions, &table).await.unwrap();
}
