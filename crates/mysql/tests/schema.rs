//! Migration of tables from version to version, tried with versions that do not exist yet.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use leasehold_core::{Error, ErrorKind};
use leasehold_mysql::{Column, ColumnType, Columns, Params, SchemaChange, Sessions, Step, TableName, TableSchema};
use leasehold_testkit::mysql::Server;

const NAME: Column = Column { name: "name", kind: ColumnType::Bytes(320), optional: false };
const TOKEN: Column = Column { name: "token", kind: ColumnType::Number, optional: false };
const OWNER: Column = Column { name: "owner", kind: ColumnType::Binary(16), optional: true };
const ENDS: Column = Column { name: "ends", kind: ColumnType::Moment, optional: false };
const WAITS: Column = Column { name: "waits", kind: ColumnType::Flag, optional: true };
const NOTE: Column = Column { name: "note", kind: ColumnType::Bytes(9), optional: true };

const TWICE: &[SchemaChange] = &[
    SchemaChange { alter: "ADD COLUMN note VARBINARY(9) NULL", readable_since: 1 },
    SchemaChange { alter: "MODIFY token BIGINT UNSIGNED NOT NULL", readable_since: 3 },
];

/// The schemas of three versions: the second adds a column, and the third changes the meaning of another.
const PROGRAMS: [TableSchema; 3] = [
    TableSchema { name: "leasehold test", changes: &[], columns: &[NAME, TOKEN], primary_key: &["name"] },
    TableSchema {
        name: "leasehold test",
        changes: TWICE.split_at(1).0,
        columns: &[NAME, TOKEN, NOTE],
        primary_key: &["name"],
    },
    TableSchema { name: "leasehold test", changes: TWICE, columns: &[NAME, TOKEN, NOTE], primary_key: &["name"] },
];

struct Database {
    server: Server,
    sessions: Sessions,
    table: TableName,
}

impl Database {
    async fn of_version_1() -> Self {
        let server = Server::needed(&[]).await;
        let sessions = Sessions::at(&server.url()).unwrap();
        let database = Self { server, sessions, table: TableName::new("t").unwrap() };
        PROGRAMS[0].migrate(&database.sessions, &database.table).await.unwrap();
        database.server.sql(&["INSERT INTO leasehold.t (name, token) VALUES ('k', 42)"]).await;
        database
    }

    async fn check(&self, program: &TableSchema) -> Result<(), Error> {
        program.check(&self.sessions, &self.table).await
    }

    async fn migrate(&self, program: &TableSchema) -> Result<(), Error> {
        program.migrate(&self.sessions, &self.table).await
    }

    async fn token(&self) -> u64 {
        let reply = self.sessions.run(Step::new("test", "SELECT token FROM t"), Params::Empty).await.unwrap();
        Columns::of(&reply.rows[0], "test").number().unwrap()
    }
}

fn is_refused(answer: Result<(), Error>, words: &[&str]) {
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
}

async fn an_older_table_is_refused_with_the_advice_that_repairs_it() {
    let database = Database::of_version_1().await;
    let [first, second, third] = &PROGRAMS;
    is_refused(database.check(third).await, &["version 1", "version 3", "leasehold migrate"]);
    database.migrate(third).await.unwrap();
    database.check(third).await.unwrap();
    assert_eq!(database.token().await, 42);
    // Programs of older versions can use no table of the third, and migrating with them does not turn it back.
    for (older, version) in [(first, "version 1"), (second, "version 2")] {
        is_refused(database.check(older).await, &["version 3", version, "newer"]);
        is_refused(database.migrate(older).await, &["version 3", version, "newer"]);
    }
    database.check(third).await.unwrap();
}

async fn programs_use_a_newer_table_that_says_that_they_can() {
    let database = Database::of_version_1().await;
    let [first, second, _] = &PROGRAMS;
    database.migrate(second).await.unwrap();
    database.check(second).await.unwrap();
    database.check(first).await.unwrap();
    database.migrate(first).await.unwrap();
    database.check(second).await.unwrap();
}

async fn a_table_of_another_shape_is_refused_with_what_is_wrong() {
    let database = Database::of_version_1().await;
    let columns = &[NAME, OWNER, ENDS, WAITS];
    let shape = TableSchema { name: "leasehold shape", changes: &[], columns, primary_key: &["name", "owner"] };
    let odd = TableName::new("odd").unwrap();
    is_refused(shape.check(&database.sessions, &odd).await, &["no such table", "leasehold migrate"]);
    for (change, words) in [
        ("ENGINE=MyISAM", "its engine is MyISAM"),
        ("COMMENT='another shape 1'", "its comment is"),
        ("DROP COLUMN waits", "the column waits is missing"),
        ("MODIFY name VARBINARY(100) NOT NULL", "varbinary(100)"),
        ("MODIFY name BINARY(9) NOT NULL", "binary(9)"),
        ("MODIFY ends DATETIME NOT NULL", "datetime(0)"),
        ("MODIFY ends TIMESTAMP(6) NOT NULL", "timestamp(6)"),
        ("MODIFY waits BIGINT", "bigint"),
        ("DROP PRIMARY KEY, ADD INDEX (name)", "the primary key has to be (name, owner)"),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (name, owner, ends)", "the primary key has to be (name, owner)"),
    ] {
        database.server.sql(&["DROP TABLE IF EXISTS leasehold.odd"]).await;
        shape.migrate(&database.sessions, &odd).await.unwrap();
        shape.check(&database.sessions, &odd).await.unwrap();
        database.server.sql(&[&format!("ALTER TABLE leasehold.odd {change}")]).await;
        is_refused(shape.check(&database.sessions, &odd).await, &[words, "leasehold migrate"]);
    }
}

async fn of_programs_that_migrate_at_the_same_time_one_makes_each_change() {
    let database = Database::of_version_1().await;
    let third = &PROGRAMS[2];
    let all = tokio::join!(database.migrate(third), database.migrate(third), database.migrate(third));
    for migrated in [all.0, all.1, all.2] {
        migrated.unwrap();
    }
    database.check(third).await.unwrap();
}

async fn a_change_that_the_user_may_not_make_changes_nothing() {
    let database = Database::of_version_1().await;
    database.server.sql(&["CREATE USER u@'%'", "GRANT SELECT, CREATE ON leasehold.* TO u@'%'"]).await;
    let sessions = Sessions::at(&database.server.url_of("u", "")).unwrap();
    is_refused(PROGRAMS[2].migrate(&sessions, &database.table).await, &["right"]);
    database.check(&PROGRAMS[0]).await.unwrap();
}

leasehold_testkit::main! {
    an_older_table_is_refused_with_the_advice_that_repairs_it,
    a_table_of_another_shape_is_refused_with_what_is_wrong,
    programs_use_a_newer_table_that_says_that_they_can,
    @multi_thread of_programs_that_migrate_at_the_same_time_one_makes_each_change,
    a_change_that_the_user_may_not_make_changes_nothing,
}
