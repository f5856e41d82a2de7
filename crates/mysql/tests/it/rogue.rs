//! A rogue server: it neither gets the password, nor makes a client panic, nor has the password quoted.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use leasehold_core::Result;
use leasehold_mysql::{ConnectionSettings, Params, Pool, Reply, Sessions, Step};
use leasehold_testkit::{shown, test};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PASSWORD: &str = "canary-of-the-application";

/// The answers of the rogue server, one packet after the other: first to the login, then to every statement.
type Script = &'static [&'static [u8]];

/// Asks for the password itself, encrypted with a key of the server.
const FULL: Script = &[b"\x01\x04"];
/// Asks for the password by another plugin than the one that the login began with.
const SWITCH_TO_CLEAR: Script = &[b"\xfemysql_clear_password\x00"];
const SWITCH_TO_DIALOG: Script = &[b"\xfedialog\x00\x02Password: "];
const OK: &[u8] = b"\x00\x00\x00\x02\x00\x00\x00";
/// Announces more columns than fit into any memory.
const COLUMNS: Script = &[OK, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"];
const NONSENSE: Script = &[OK, b"", b"\xfb", b"\x00"];

struct Rogue {
    port: u16,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Rogue {
    async fn with(plugin: &'static str, script: Script) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::<Mutex<Vec<u8>>>::default();
        let kept = Arc::clone(&received);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, plugin, script, Arc::clone(&kept)));
            }
        });
        Self { port, received }
    }

    /// Under a name that is not known to be of this machine: on loopback no TLS is asked for.
    fn url(&self, query: &str) -> String {
        format!("mysql://app:{PASSWORD}@127.1:{}/locks?{query}", self.port)
    }

    /// A URL for the driver, which knows fewer parameters.
    fn pool_url(&self) -> String {
        format!("mysql://app:canary%2Fof%20the%20application@127.0.0.1:{}/locks", self.port)
    }

    fn received(&self) -> Vec<u8> {
        self.received.lock().unwrap().clone()
    }
}

async fn serve(mut client: TcpStream, plugin: &str, script: Script, received: Arc<Mutex<Vec<u8>>>) {
    let mut greeting = b"\x0a8.0.36\x00\x01\x00\x00\x00abcdefgh\x00".to_vec();
    // Protocol 4.1, long passwords, plugins, transactions, databases; no TLS.
    greeting.extend(0x0008_a20f_u32.to_le_bytes()[..2].iter());
    greeting.extend(b"\x2d\x02\x00");
    greeting.extend(0x0008_a20f_u32.to_le_bytes()[2..].iter());
    greeting.extend(b"\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\x00");
    greeting.extend(plugin.as_bytes());
    greeting.push(0);
    drop(send(&mut client, 0, &greeting).await);
    let mut answers = script.iter().peekable();
    loop {
        let mut header = [0; 4];
        if client.read_exact(&mut header).await.is_err() {
            return;
        }
        let mut packet = vec![0; usize::from(header[0]) + (usize::from(header[1]) << 8)];
        drop(client.read_exact(&mut packet).await);
        received.lock().unwrap().extend(&packet);
        // The last one is repeated.
        let Some(answer) = answers.next_if(|_| true).or(script.last()) else { return };
        if send(&mut client, header[3].wrapping_add(1), answer).await.is_err() {
            return;
        }
    }
}

async fn send(client: &mut TcpStream, number: u8, packet: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(packet.len()).unwrap().to_le_bytes();
    client.write_all(&[&length[..3], &[number], packet].concat()).await
}

async fn ask(url: &str) -> Result<Reply> {
    let sessions = Sessions::at(url)?;
    let reply = sessions.run(Step::new("test", "SELECT 1"), Params::Empty).await;
    sessions.close().await;
    reply
}

#[test]
async fn a_password_is_never_sent_in_the_clear_even_where_the_network_is_trusted() {
    for plugin in ["caching_sha2_password", "mysql_native_password"] {
        for script in [SWITCH_TO_CLEAR, SWITCH_TO_DIALOG] {
            let rogue = Rogue::with(plugin, script).await;
            let error = ask(&rogue.url("allow_public_key_retrieval=true")).await.unwrap_err();
            let received = rogue.received();
            assert!(!received.windows(PASSWORD.len()).any(|bytes| bytes == PASSWORD.as_bytes()), "{error}");
            assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error:?}");
            assert!(!received.is_empty());
        }
    }
    // This is what the URL has to allow: the driver asks for a key, and would use any key that it is sent.
    let rogue = Rogue::with("caching_sha2_password", FULL).await;
    drop(ask(&rogue.url("allow_public_key_retrieval=true")).await);
    assert_eq!(rogue.received().last(), Some(&2), "the rogue is harmless, so this shows nothing");
}

#[test]
async fn malformed_answers_are_errors_and_no_panics() {
    for script in [COLUMNS, NONSENSE, &[OK, OK], &[b""], &[b"\x01"], &[b"\xfe"], &[b"\x01\x04", b""]] {
        let rogue = Rogue::with("caching_sha2_password", script).await;
        let sessions = Sessions::at(&rogue.url("allow_public_key_retrieval=true&pool_max=1")).unwrap();
        // More statements than connections, so that a panic that lost a connection is noticed.
        for _ in 0..3 {
            let error = sessions.run(Step::new("test", "SELECT 1"), Params::Empty).await;
            let Err(error) = error else { continue };
            for wrong in ["busy", "leads to another server"] {
                assert!(!error.to_string().contains(wrong), "what is lost is a connection, or a server: {error}");
            }
            assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error:?}");
        }
        sessions.close().await;
    }
}

#[test]
async fn a_server_is_quoted_without_the_password_and_on_one_line() {
    const BY_ITSELF: Script = &[b"\xff\x28\x04#42000canary/of the application"];
    const ENCODED: Script = &[b"\xff\x28\x04#42000canary%2fof%20the%20application"];
    // A failure with advice has the server's words as its cause.
    const AS_A_CAUSE: Script = &[b"\xff\x15\x04#28000no\n\x1b]0;\x07\xe2\x80\xaecanary/of the application"];
    const LATER: Script = &[OK, b"\xff\x28\x04#42000\n\x1bcanary%2Fof%20the%20application"];
    const PLUGIN: Script = &[b"\xfecanary/of the application\x1b\n\x00abcdefghijklmnopqrst\x00"];
    for (script, hint) in [
        (BY_ITSELF, "server error 1064"),
        (ENCODED, "server error 1064"),
        (AS_A_CAUSE, "server error 1045"),
        (LATER, "server error 1064"),
        (PLUGIN, "the driver does not take"),
    ] {
        let rogue = Rogue::with("caching_sha2_password", script).await;
        let url = rogue.url("allow_public_key_retrieval=true").replace(PASSWORD, "canary%2Fof%20the%20application");
        let message = shown(&ask(&url).await.unwrap_err());
        assert!(message.contains(hint), "{message}");
        for spelling in ["canary/of the", "canary%2fof", "canary%2Fof"] {
            assert!(!message.contains(spelling), "{message}");
        }
        assert!(!message.contains(|c: char| c.is_control() || c == '\u{202e}'), "{message:?}");
        // The password of a pool of the caller's is not known, so the server is not quoted at all.
        let of_a_pool =
            match ConnectionSettings::default().pool(Pool::from_url(rogue.pool_url()).unwrap()).open("t").await {
                Ok(_) => continue,
                Err(error) => shown(&error),
            };
        assert!(!of_a_pool.contains("canary"), "{of_a_pool}");
    }
}
