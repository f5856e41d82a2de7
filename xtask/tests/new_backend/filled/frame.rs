//! What the suite does not look at: URLs, the kind, closing.

use std::time::Duration;

use leasehold_core::{Backend, Claim, LockKey, Locker, LockerExt, Mode, Target};
use leasehold_sample_store::{KIND, SampleStore};

#[tokio::test]
async fn a_url_names_one_store_and_one_namespace() {
    let held = SampleStore::connect("sample-store://a?namespace=n").await.expect("it connects");
    let _guard = held.lock("k").await.expect("it is free");
    for (url, is_free) in [
        ("sample-store://a?namespace=n", false),
        ("sample-store://a?namespace=other", true),
        ("sample-store://a", true),
        ("sample-store://b?namespace=n", true),
    ] {
        let other = (KIND.connect)(Target::new(url)).await.expect("it connects");
        assert_eq!(other.try_lock("k").await.expect("it answers").is_some(), is_free, "{url}");
    }
    assert!(KIND.knows("sample-store") && (KIND.capabilities)() == held.capabilities());
    assert_eq!((KIND.name, KIND.package), (held.capabilities().backend(), "leasehold-sample-store"));
}

#[tokio::test]
async fn closing_closes_the_store() {
    let backend = SampleStore::builder().url("sample-store://c").backend().await.expect("it connects");
    let claim = Claim::new(&LockKey::new("k").expect("a key"), Mode::Exclusive, Duration::from_secs(9));
    backend.try_acquire(&claim).await.expect("it is open");
    SampleStore::from(backend.clone()).close().await;
    backend.try_acquire(&claim).await.expect_err("it is closed");
}
