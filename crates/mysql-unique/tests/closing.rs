//! What closing, and a try, promise where the server is silent, on a private server; without one it is ignored.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use leasehold_mysql::testing::Server;
use leasehold_mysql_unique::{Backed, Backend, MysqlUnique};
use leasehold_testkit::{Silenced, needs_or_why};

async fn silenced(query: &str) -> (Server, Silenced<MysqlUnique>) {
    let server = needs_or_why("MariaDB or MySQL", Server::start(&[]).await);
    let url = server.url() + query;
    MysqlUnique::migrate(&url).await.unwrap();
    let (ours, theirs) = (MysqlUnique::connect(&url).await.unwrap(), MysqlUnique::connect(&url).await.unwrap());
    let answers_within = ours.engine().backend().answers_within();
    (server, Silenced { beside: ours.clone(), ours, theirs, answers_within })
}

async fn closing(query: &str) {
    let (server, silenced) = silenced(query).await;
    silenced.closing_ends(|| server.pause(), silenced.ours.close()).await;
}

async fn closing_ends_while_the_server_is_silent() {
    closing("").await;
}

async fn closing_ends_beside_a_doorbell() {
    closing("&doorbell=true").await;
}

async fn tries_are_answered_while_the_server_is_silent() {
    let (server, silenced) = silenced("").await;
    silenced.tries_are_answered(|| server.pause()).await;
}

leasehold_testkit::main! {
    @multi_thread tries_are_answered_while_the_server_is_silent,
    @multi_thread closing_ends_while_the_server_is_silent,
    @multi_thread closing_ends_beside_a_doorbell,
}
