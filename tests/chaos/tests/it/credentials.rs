//! A password is in nothing that a backend shows: neither in `Debug`, `Display` and causes of errors, nor in traces, what the
//! drivers log, or the labels of metrics; with a server that takes it and with one that does not, with TLS and with Sentinels.

use std::fmt::{Debug, Write as _};
use std::path::Path;
use std::time::Duration;

use leasehold_core::{
    Admin, Backed, Capability, Error, ErrorKind, LockKey, LockOptions, Locker, LockerExt, Result, Wait, connect_within,
    describe_metrics,
};
use leasehold_mysql_rw::MysqlRw;
use leasehold_mysql_unique::MysqlUnique;
use leasehold_redis_reentrant::RedisReentrant;
use leasehold_redis_rw::RedisRw;
use leasehold_redis_single::RedisSingle;
use leasehold_redlock::Redlock;
use leasehold_testkit::redis::{Recorder, Sentinels, Server};
use leasehold_testkit::{Authority, Issued, mysql, needs, shown, test};
use metrics_exporter_prometheus::PrometheusBuilder;

/// Of letters and digits, which names of metrics may have, too.
const CANARY: &str = "hunter2canary";
const HERE: &str = "IP:127.0.0.1";
/// As users of a backend have it.
const BACKENDS: [&str; 6] = ["redis-single", "redis-reentrant", "redis-rw", "redlock", "mysql-unique", "mysql-rw"];

/// All that was told: by values, by errors, in traces and logs.
struct Told {
    text: String,
    recorder: Recorder,
}

impl Told {
    fn listen() -> Self {
        Self { text: String::new(), recorder: Recorder::start() }
    }

    fn debug(&mut self, value: &dyn Debug) {
        writeln!(self.text, "{value:?} {value:#?}").unwrap();
    }

    fn error(&mut self, error: &Error) {
        writeln!(self.text, "{}", shown(error)).unwrap();
    }

    /// Everything, also names and labels of metrics, which must be enough to show that it was listened to.
    #[track_caller]
    fn all(self, labels: &str) -> String {
        let recorded = self.recorder.recorded();
        assert!(recorded.contains("acquire"), "nothing was recorded: {recorded}");
        assert!(labels.contains("leasehold"), "no metric was used: {labels}");
        format!("{}\n{recorded}\n{labels}", self.text)
    }
}

/// Connects a backend by this URL, and uses it. Answers what became of the connection.
async fn use_backend(backend: &str, url: &str, told: &mut Told) -> Result<()> {
    match backend {
        "redis-single" => {
            told.debug(&RedisSingle::builder().url(url));
            use_locks(RedisSingle::connect(url).await, told).await
        }
        "redis-reentrant" => {
            told.debug(&RedisReentrant::builder().url(url));
            let connected = RedisReentrant::connect(url).await;
            told.debug(&connected);
            use_locks(connected.map(|sessions| sessions.session()), told).await
        }
        "redis-rw" => {
            told.debug(&RedisRw::builder().url(url));
            use_locks(RedisRw::connect(url).await, told).await
        }
        "redlock" => {
            told.debug(&Redlock::builder().nodes(url.split(',')));
            use_locks(Redlock::connect(url).await, told).await
        }
        "mysql-unique" => use_locks(MysqlUnique::connect(url).await, told).await,
        "mysql-rw" => use_locks(MysqlRw::connect(url).await, told).await,
        other => panic!("no such backend: {other}"),
    }
}

async fn use_locks(connected: Result<impl Backed>, told: &mut Told) -> Result<()> {
    let locks = match connected {
        Ok(locks) => locks,
        Err(error) => {
            told.error(&error);
            return Err(error);
        }
    };
    told.debug(&locks);
    let (key, options) = (LockKey::new("k").unwrap(), LockOptions::default().label("who").reason("why"));
    let guard = locks.acquire(&key, &options).await.inspect_err(|error| told.error(error))?.unwrap();
    told.debug(&(&guard, guard.handle()));
    told.debug(&locks.acquire(&LockKey::new("k2").unwrap(), &options.clone().wait(Wait::Never)).await);
    told.debug(&(locks.inspect(&key).await, locks.list("", None).await, locks.capabilities()));
    told.debug(&guard.renew().await);
    told.debug(&locks.force_release(&key).await);
    if locks.capabilities().has(Capability::Detach) {
        let detached = LockKey::new("k3").unwrap();
        let again = locks.acquire(&detached, &options).await?.unwrap();
        told.debug(&again.detach());
        told.debug(&locks.force_release(&detached).await);
    }
    told.debug(&guard.release().await);
    locks.engine().close().await;
    told.debug(&locks.acquire(&key, &options).await);
    Ok(())
}

async fn all_told(cases: &[(&str, String)], expected: &[Option<ErrorKind>]) -> String {
    let mut told = Told::listen();
    let metrics = PrometheusBuilder::new().build_recorder();
    let _listening = metrics::set_default_local_recorder(&metrics);
    describe_metrics();
    for (backend, url) in cases {
        let outcome = use_backend(backend, url, &mut told).await;
        let kind = outcome.as_ref().err().map(Error::kind);
        assert!(expected.contains(&kind), "{backend} at {}: {outcome:?}", url.replace(CANARY, "…"));
    }
    told.all(&metrics.handle().render())
}

#[track_caller]
fn assert_hidden(told: &str) {
    for line in told.lines() {
        assert!(!line.contains(CANARY), "{line}");
    }
}

/// A user with a password of its own, which is in nobody's command line.
async fn user(server: &Server) {
    let made = server.ask(&["ACL", "SETUSER", "app", "on", &format!(">{CANARY}"), "~*", "&*", "+@all"]).await;
    assert_eq!(made.text(), "OK");
}

fn with_user(url: &str) -> String {
    url.replacen("://", &format!("://app:{CANARY}@"), 1)
}

async fn tls(server: &Server) -> Option<(u16, Authority)> {
    let authority = Authority::new()?;
    let issued: Issued = authority.issue("server", HERE);
    Some((server.serve_tls(authority.files(&issued), "no").await?, authority))
}

fn encrypted(port: u16, authority: &Authority) -> String {
    let cert: &Path = authority.cert();
    format!("rediss://app:{CANARY}@127.0.0.1:{port}?cacert={}", cert.display())
}

#[test]
async fn no_backend_shows_the_password_of_a_redis_that_takes_it() {
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(needs("redis-server", Server::start(&[]).await));
    }
    let sentinels = needs("redis-server", Sentinels::start().await);
    user(&sentinels.primary).await;
    let mut secure = Vec::new();
    for server in &servers {
        user(server).await;
        let (port, authority) = needs("redis-server with TLS, and openssl", tls(server).await);
        secure.push((encrypted(port, &authority), authority));
    }
    let nodes: Vec<String> = servers.iter().map(|server| with_user(&server.url())).collect();
    let encrypted: Vec<&str> = secure.iter().map(|(url, _)| url.as_str()).collect();
    let mut cases = vec![("redlock", nodes.join(",")), ("redlock", encrypted.join(","))];
    for backend in ["redis-single", "redis-reentrant"] {
        for url in [&nodes[0], encrypted[0], &with_user(&sentinels.url())] {
            // Of what another backend left under the same names, it would complain.
            let sign = if url.contains('?') { '&' } else { '?' };
            cases.push((backend, format!("{url}{sign}namespace={backend}")));
        }
    }
    assert_hidden(&all_told(&cases, &[None]).await);
}

#[test]
async fn no_backend_shows_the_password_of_a_mysql_that_takes_it() {
    let authority = needs("openssl", Authority::new());
    let issued = authority.issue("server", HERE);
    let options = ["ca", "cert", "key"].into_iter().zip(authority.files(&issued));
    let options: Vec<String> = options.map(|(option, file)| format!("--ssl-{option}={}", file.display())).collect();
    let server = mysql::Server::needed(&options.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let user = format!("CREATE USER app@'%' IDENTIFIED BY '{CANARY}'");
    server.sql(&[&user, "GRANT ALL ON leasehold.* TO app@'%'"]).await;
    let plain = server.url_of("app", CANARY);
    MysqlUnique::migrate(&plain).await.unwrap();
    MysqlRw::migrate(&plain).await.unwrap();
    let encrypted = plain.replace("allow_public_key_retrieval=true", &format!("ssl_ca={}", authority.cert().display()));
    assert_ne!(plain, encrypted);
    let urls = [plain, encrypted];
    let cases: Vec<_> = ["mysql-unique", "mysql-rw"]
        .into_iter()
        .flat_map(|backend| urls.iter().map(move |url| (backend, url.clone())))
        .collect();
    assert_hidden(&all_told(&cases, &[None]).await);
}

/// Where nobody listens, and where another password is right. URLs that are written wrongly are asked of the crates that read them.
const TO_REDIS: [&str; 7] = [
    "redis://app:CANARY@127.0.0.1:1",
    "rediss://app:CANARY@127.0.0.1:1",
    "redis://app:CANARY@HERE",
    "redis://CANARY@HERE",
    "redis-sentinel://app:CANARY@127.0.0.1:1?sentinelServiceName=m&sentinelPassword=CANARY",
    "redis-sentinel://app:CANARY@HERE?sentinelServiceName=m&sentinelPassword=CANARY",
    "redis-cluster://app:CANARY@HERE",
];
const TO_MYSQL: [&str; 3] = [
    "mysql://app:CANARY@127.0.0.1:1/leasehold?allow_public_key_retrieval=true",
    "mysql://app:CANARY@127.0.0.1:1/leasehold?require_ssl=true",
    "mysql://app:CANARY@HERE/leasehold?allow_public_key_retrieval=true",
];

fn failing(backend: &str, port: u16) -> Vec<String> {
    let urls = if backend.starts_with("mysql") { &TO_MYSQL[..] } else { &TO_REDIS };
    let urls = urls.iter().map(|url| url.replace("CANARY", CANARY).replace("HERE", &format!("127.0.0.1:{port}")));
    let nodes = |url: String| [1, 2, 3].map(|node| url.replace("127.0.0.1", &format!("127.0.0.{node}"))).join(",");
    urls.map(|url| if backend == "redlock" { nodes(url) } else { url }).collect()
}

#[test]
async fn no_backend_shows_a_password_that_is_refused_or_never_asked_for() {
    let redis = needs("redis-server", Server::start(&[]).await);
    let mysql = mysql::Server::needed(&[]).await;
    let mut cases = Vec::new();
    for backend in BACKENDS {
        let port = if backend.starts_with("mysql") { mysql.port() } else { redis.port() };
        cases.extend(failing(backend, port).into_iter().map(|url| (backend, url)));
    }
    // Whose connections are asked for with a limit, too.
    let limited = connect_within(Wait::UpTo(Duration::from_millis(50)), || RedisSingle::connect(&cases[0].1)).await;
    assert_hidden(&shown(&limited.unwrap_err()));
    let kinds = [ErrorKind::InvalidOptions, ErrorKind::Unavailable, ErrorKind::Backend];
    let mut told = Told::listen();
    for (backend, url) in &cases {
        let error = use_backend(backend, url, &mut told).await.expect_err(backend);
        assert!(kinds.contains(&error.kind()), "{backend}: {error}");
    }
    assert_hidden(&told.text);
    assert_hidden(&told.recorder.recorded());
}
