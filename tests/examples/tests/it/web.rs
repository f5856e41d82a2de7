use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use leasehold::{Admin, LockerExt};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{PATIENCE, eventually, needs, test};

use crate::running::Running;

#[test(multi_thread)]
async fn visits_of_one_user_are_counted_one_after_the_other() {
    let server = needs("redis-server", Server::start(&[]).await);
    // Two services on one store would count in two places: the lock is for what they share, so here is one.
    let (service, address) = started(&server.url());
    let visits: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn({
                let address = address.clone();
                move || answer(post(&address, "ada"))
            })
        })
        .collect();
    let mut visits: Vec<_> = visits.into_iter().map(|visit| visit.join().expect("an answer")).collect();
    visits.sort();
    let expected: Vec<_> = (1..=8).map(|visit| (200, visit.to_string())).collect();
    assert_eq!(visits, expected);
    assert_eq!(answer(post(&address, &"x".repeat(300))).0, 400, "a key has at most 255 bytes");
    service.terminate();
    assert_eq!(service.rest(), ["closed"]);
}

#[test(multi_thread)]
async fn a_request_in_flight_is_answered_before_the_service_ends() {
    let server = needs("redis-server", Server::start(&[]).await);
    let (mut service, address) = started(&server.url());
    let locks = leasehold::connect(&server.url()).await.expect("a connection");
    let held = locks.lock("user/ada").await.expect("a lock");
    let keys = async || server.ask(&["DBSIZE"]).await.number();
    let before = keys().await;
    let request = post(&address, "ada");
    eventually("the request waits for the lock", async || keys().await > before).await;
    service.terminate();
    eventually("the service accepts no more", async || TcpStream::connect(&address).is_err()).await;
    assert!(service.is_running(), "it has a request to answer");
    held.release().await.expect("a release");
    assert_eq!(answer(request), (200, "1".to_owned()));
    assert_eq!(service.rest(), ["closed"]);
    let left = locks.list("", None).await.expect("a list");
    assert!(left.keys.is_empty(), "{left:?}");
    locks.close().await;
}

fn started(url: &str) -> (Running, String) {
    let service = Running::start(env!("CARGO_BIN_EXE_service"), &[url, "127.0.0.1:0"]);
    let line = service.line();
    let address = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
    (service, address)
}

/// Sends a request for a visit of this user.
fn post(address: &str, user: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the service accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let head =
        format!("POST /users/{user}/visits HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the service reads");
    stream
}

/// The status and the body of the answer.
fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{head}"));
    (status, body.to_owned())
}
