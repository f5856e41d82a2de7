//! Closing ends in time where the server is silent, beside sessions that wait in it. Needs a private server; without one it is ignored.

use leasehold_mysql_unique::{Backed, Backend, MysqlUnique};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::{Silenced, test};

#[test(multi_thread, server)]
async fn closing_ends_beside_an_advisory_queue() {
    let server = Server::needed(&[]).await;
    let url = server.url() + "&advisory_queue=true";
    MysqlUnique::migrate(&url).await.unwrap();
    let (ours, theirs) = (MysqlUnique::connect(&url).await.unwrap(), MysqlUnique::connect(&url).await.unwrap());
    let answers_within = ours.engine().backend().answers_within();
    let silenced = Silenced { beside: ours.clone(), ours: ours.clone(), theirs, answers_within };
    silenced.closing_ends(|| server.pause(), ours.close()).await;
}
