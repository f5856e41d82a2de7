//! A session with a database, past every link.

use leasehold_postgres::tokio_postgres::{self, Client, NoTls, SimpleQueryMessage};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Row};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::node::{A_MOMENT, Node, Program};

/// Clients of a database log in as this user: an administrator may exceed the number of connections, and write to a read-only
/// server.
pub(crate) const USER: &str = "locks";

/// Runs statements in a database, as an operator, and gives the first column of the last answer as text.
pub(crate) fn sql(node: &Node, statements: &[&str]) -> Result<Vec<String>, String> {
    let mut session = Session::of_an_operator(node)?;
    statements.iter().try_fold(Vec::new(), |_, statement| session.ask(statement))
}

/// It blocks. Its errors begin with the code of the server.
pub(crate) struct Session {
    runtime: Runtime,
    client: Of,
}

enum Of {
    MariaDb(Conn),
    Postgres(Client),
}

impl Session {
    /// With all rights.
    pub(crate) fn of_an_operator(node: &Node) -> Result<Self, String> {
        Self::open(node, if node.program == Program::Postgres { "leasehold" } else { "root" })
    }

    /// As a client has one.
    pub(crate) fn of_a_client(node: &Node) -> Result<Self, String> {
        Self::open(node, USER)
    }

    fn open(node: &Node, user: &str) -> Result<Self, String> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let place = format!("{user}@127.0.0.1:{}/leasehold", node.port);
        let client = runtime.block_on(async {
            if node.program == Program::Postgres {
                let url = format!("postgres://{place}?sslmode=disable&connect_timeout=20");
                let connected = tokio_postgres::connect(&url, NoTls).await;
                let (client, connection) = connected.map_err(|error| of_postgres(&error))?;
                tokio::spawn(connection);
                return Ok(Of::Postgres(client));
            }
            let url = format!("mysql://{place}?prefer_socket=false&max_allowed_packet=16777216&wait_timeout=28800");
            let opts = Opts::from_url(&url).map_err(|error| error.to_string())?;
            Conn::new(opts).await.map(Of::MariaDb).map_err(of_mariadb)
        });
        client.map(|client| Self { runtime, client })
    }

    /// The first column of the answer, as text.
    pub(crate) fn ask(&mut self, statement: &str) -> Result<Vec<String>, String> {
        let asked = self.runtime.block_on(self.client.ask(statement));
        asked.map_err(|error| format!("{error}: {statement}"))
    }

    /// The sum of all numbers in the first column of the answer.
    pub(crate) fn number(&mut self, statement: &str) -> Result<i64, String> {
        Ok(self.ask(statement)?.iter().filter_map(|told| told.parse::<i64>().ok()).sum())
    }

    /// Whether no answer comes within a moment.
    pub(crate) fn is_silent(&mut self) -> bool {
        let asks = async { timeout(A_MOMENT, self.client.ask("SELECT 1")).await };
        self.runtime.block_on(asks).is_err()
    }
}

impl Of {
    async fn ask(&mut self, statement: &str) -> Result<Vec<String>, String> {
        match self {
            Self::MariaDb(client) => {
                let rows: Vec<Row> = client.query(statement).await.map_err(of_mariadb)?;
                Ok(rows.into_iter().filter_map(|row| row.get_opt::<String, _>(0)?.ok()).collect())
            }
            Self::Postgres(client) => {
                let answers = client.simple_query(statement).await.map_err(|error| of_postgres(&error))?;
                let first = |answer| match answer {
                    SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                    _ => None,
                };
                Ok(answers.into_iter().filter_map(first).collect())
            }
        }
    }
}

fn of_mariadb(error: mysql_async::Error) -> String {
    match error {
        mysql_async::Error::Server(told) => format!("{} {}", told.code, told.message),
        error => error.to_string(),
    }
}

fn of_postgres(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |told| format!("{} {}", told.code().code(), told.message()))
}
