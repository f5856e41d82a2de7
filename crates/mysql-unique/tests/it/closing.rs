//! Closing ends in time where the server is silent. Needs a private server; without one the tests are ignored.

use leasehold_mysql_unique::{Backed, Backend, MysqlUnique};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::{Silenced, needs_or_why, test};

async fn closing(query: &str) {
    let server = needs_or_why("MariaDB or MySQL", Server::start(&[]).await);
    let url = server.url() + query;
    MysqlUnique::migrate(&url).await.unwrap();
    let (ours, theirs) = (MysqlUnique::connect(&url).await.unwrap(), MysqlUnique::connect(&url).await.unwrap());
    let answers_within = ours.engine().backend().answers_within();
    let silenced = Silenced { beside: ours.clone(), ours: ours.clone(), theirs, answers_within };
    silenced.closing_ends(|| server.pause(), ours.close()).await;
}

#[test(multi_thread, server)]
async fn closing_ends_while_the_server_is_silent() {
    closing("").await;
}

#[test(multi_thread, server)]
async fn closing_ends_beside_an_advisory_queue() {
    closing("&advisory_queue=true").await;
}
