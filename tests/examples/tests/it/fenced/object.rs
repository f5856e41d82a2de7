use leasehold_testkit::test;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;

use futures::future::join_all;
use leasehold::FencingToken;
use leasehold::fenced::{Outcome, put_object};

use crate::fenced::tokens_of;

/// A store of one object, as S3 and its like have it: content, metadata, and a version that a write can name as its condition.
#[derive(Default)]
struct Store {
    object: Mutex<Option<Object>>,
    version: Version,
}

#[derive(Clone)]
struct Object {
    version: u64,
    fence: u64,
    content: String,
}

#[derive(Clone, Copy, Default)]
enum Version {
    /// It counts the writes.
    #[default]
    Generation,
    /// It is a digest of the content.
    Digest,
}

impl Store {
    fn read(&self) -> Option<Object> {
        self.object.lock().expect("nobody panicked").clone()
    }

    /// Writes if the version is still this one.
    fn put(&self, unchanged: Option<u64>, fence: u64, content: &str) -> bool {
        let mut object = self.object.lock().expect("nobody panicked");
        let version = object.as_ref().map(|object| object.version);
        if version != unchanged {
            return false;
        }
        let version = match self.version {
            Version::Generation => version.unwrap_or(0) + 1,
            Version::Digest => {
                let mut digest = DefaultHasher::new();
                content.hash(&mut digest);
                digest.finish()
            }
        };
        *object = Some(Object { version, fence, content: content.to_owned() });
        true
    }

    /// A fenced write. Others have their turn after each request.
    async fn write(&self, token: u64, content: &str) -> Outcome {
        let read = async || {
            let object = self.read();
            tokio::task::yield_now().await;
            Ok::<_, ()>(object.map(|object| (object.version, object.fence)))
        };
        let put = async |version| {
            let written = self.put(version, token, content);
            tokio::task::yield_now().await;
            Ok(written)
        };
        put_object(FencingToken::from(token), read, put).await.expect("this store does not fail")
    }
}

#[test]
async fn an_object_refuses_a_late_write() {
    let store = Store::default();
    assert_eq!(store.write(5, "fifty").await, Outcome::Written, "the first write of all");
    assert_eq!(store.write(5, "fifty-one").await, Outcome::Written, "the same holder");
    assert_eq!(store.write(9, "ninety").await, Outcome::Written, "the next holder");
    assert_eq!(store.write(5, "fifty-two").await, Outcome::Stale { seen: 9.into() }, "the late holder");
    assert_eq!(store.read().expect("an object").content, "ninety");
    let failing =
        put_object(FencingToken::from(10), async || Ok(Some((1, 9))), async |_: Option<u64>| Err("no answer"));
    assert_eq!(failing.await, Err("no answer"), "an outcome that is unknown is the caller's to know");
}

#[test(multi_thread)]
async fn an_object_never_goes_back_to_a_smaller_token() {
    let store = &Store::default();
    let stale = join_all((0..8).map(|writer| async move {
        let (mut stale, mut before) = (0, 0);
        for token in tokens_of(writer, 4000) {
            if let Outcome::Stale { seen } = store.write(token, &token.to_string()).await {
                assert!(seen.get() > token, "{seen} for {token}");
                stale += 1;
            }
            let object = store.read().expect("an object");
            assert!(
                object.fence >= before && object.content == object.fence.to_string(),
                "{} after {before}",
                object.fence
            );
            before = object.fence;
        }
        stale
    }));
    assert!(stale.await.into_iter().sum::<u64>() > 0, "no writer was late");
    assert_eq!(store.read().expect("an object").fence, 4000);
}

/// What the documentation warns of: such a version does not show that the fence has changed. With the token in the content it does.
#[test]
async fn a_version_that_is_a_digest_of_the_content_alone_lets_a_late_write_through() {
    for (token_in_content, late) in [(false, true), (true, false)] {
        let store = Store { version: Version::Digest, ..Store::default() };
        let content = |token: u64| if token_in_content { format!("{token}: open") } else { "open".to_owned() };
        assert_eq!(store.write(5, &content(5)).await, Outcome::Written);
        // The late holder has read, and is paused before its write.
        let read = store.read().expect("an object");
        assert_eq!(store.write(9, &content(9)).await, Outcome::Written);
        assert_eq!(
            store.put(Some(read.version), 5, "5: late"),
            late,
            "with the token in the content: {token_in_content}"
        );
    }
}
