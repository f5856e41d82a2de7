//! Keys of all kinds, and what operators see of them.

use std::time::Duration;

use leasehold_redis_single::{Admin, LockKey, LockOptions, LockerExt, RedisSingle, Result};
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{needs, test};

#[test]
async fn what_is_written_is_what_the_readme_says() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let options = LockOptions::new().label("web-1").ttl(Duration::from_secs(50));
    let guard = locks.acquire(&LockKey::new("a b")?, &options).await?.unwrap();
    let epoch = guard.fencing_token().unwrap().epoch().to_string();
    let entry = server.ask(&["GET", "{leasehold:a%20b}:lock"]).await;
    let parts: Vec<&str> = entry.text().splitn(3, ' ').collect();
    let [owner, number, metadata] = parts[..] else { panic!("{entry:?}") };
    assert!(owner.len() == 32 && owner.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(number, epoch);
    let metadata: serde_json::Value = serde_json::from_str(metadata).unwrap();
    assert_eq!(metadata["label"], "web-1");
    assert!(metadata["since"].is_u64() && metadata.get("reason").is_none());
    assert_eq!(server.ask(&["GET", "{leasehold:bgcm}:epoch"]).await.text(), format!("epoch {epoch}"));
    let left = server.ask(&["PTTL", "{leasehold:a%20b}:lock"]).await.number();
    assert!(left > 0 && left <= 50_000, "{left}");
    locks.force_release(guard.key()).await?;
    assert_eq!(server.ask(&["GET", "{leasehold:a%20b}:forced"]).await.text(), owner);
    let mut names = match server.ask(&["KEYS", "*"]).await {
        Answer::List(names) => names.iter().map(|name| name.text().to_owned()).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    names.sort();
    assert_eq!(names, ["{leasehold:a%20b}:forced", "{leasehold:bgcm}:epoch"]);
    Ok(())
}
