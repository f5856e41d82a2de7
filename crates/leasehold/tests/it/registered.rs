//! A kind of store from outside of this crate.

use leasehold_testkit::test;
use std::sync::OnceLock;

use leasehold::{
    Address, Admin, Election, ErrorKind, Kind, LockOptions, Locker, LockerExt, Locks, Memory, Result, RwLockerExt,
    Semaphore, Wait, connect_within,
};

/// One store for all who connect, as a server would be.
fn store() -> &'static Memory {
    static STORE: OnceLock<Memory> = OnceLock::new();
    STORE.get_or_init(Memory::new)
}

const fn memory(schemes: &'static [&'static str]) -> Kind {
    Kind::new(
        "memory",
        schemes,
        || store().capabilities(),
        |target| {
            Box::pin(async move {
                assert!(target.url.ends_with("//ada:secret@h"), "the URL comes as it was given");
                Ok(Locks::shared(store().contender()))
            })
        },
    )
}

#[test]
async fn its_urls_connect_and_it_is_listed_and_each_view_is_of_one_store() -> Result<()> {
    let before = leasehold::connect("heap://ada:secret@h").await.unwrap_err();
    assert_eq!(before.kind(), ErrorKind::InvalidOptions);
    leasehold::register(memory(&["heap"]).aliases(&["heaps"]).package("heap-locks").purpose("one process"))?;

    let here = leasehold::connect("heap://ada:secret@h").await?;
    let there = connect_within(Wait::Never, || leasehold::connect("heaps://ada:secret@h")).await?;
    let guard = here.lock("k").await?;
    assert!(there.try_lock("k").await?.is_none());
    assert!(there.rw().unwrap().acquire_read(guard.key(), &LockOptions::new().wait(Wait::Never)).await?.is_none());
    let now = LockOptions::new().wait(Wait::Never);
    let busy = there.acquire_or_busy(guard.key(), &now).await?.unwrap_err();
    assert!(busy.remaining.is_some(), "what the store knows of the holder's lease comes through");
    let attached = there.attach(&guard.detach().unwrap(), &now).await?.unwrap();
    assert!(here.try_lock("k").await?.is_none());
    attached.release().await?;

    let held = there.locker().lock("k").await?;
    let seen = (here.inspect(held.key()).await?.holders.len(), here.admin().list("k", None).await?.keys.len());
    assert_eq!((seen, here.force_release(held.key()).await?.holders.len()), ((1, 1), 1));
    drop((held, Semaphore::new(here.clone(), "encode", 2)?.acquire().await?));
    drop(Election::new(here.clone(), "scheduler", "host-a")?.campaign().await?);
    assert_eq!(format!("{here:?}"), "Locks(\"memory\")");
    let (clone, held) = (here.clone(), here.lock("k").await?);
    here.close().await;
    assert!(!held.is_held());
    assert_eq!(clone.lock("k").await.unwrap_err().kind(), ErrorKind::Closed);

    let listed = leasehold::kinds().into_iter().find(|kind| kind.knows("heap"));
    assert_eq!(listed.unwrap().purpose, "one process");
    assert_eq!(leasehold::kind_of("heaps:").unwrap().package, "heap-locks");
    assert!(leasehold::kind_of("heep:").unwrap_err().known.contains(&"heap"));
    assert_eq!(Address::new("heap://ada:secret@h").public(), "heap://ada@h");
    Ok(())
}

#[test]
fn a_scheme_belongs_to_one_kind_whether_or_not_that_is_built_in() {
    leasehold::register(memory(&["first"]).aliases(&["first-too"])).unwrap();
    for (schemes, aliases, why) in [
        (&["first"][..], &[][..], "first: is taken"),
        (&["second", "first-too"], &[], "first-too: is taken"),
        (&["second"], &["first"], "first: is taken"),
        (&["second"], &["second"], "second: is taken"),
        (&["file"], &[], "file: is taken"),
        (&["redis"], &[], "redis: is taken"),
        (&["second"], &["postgresql"], "postgresql: is taken"),
        (&["2nd"], &[], "cannot be the scheme"),
        (&["sec:ond"], &[], "cannot be the scheme"),
        (&[], &["second"], "no scheme"),
    ] {
        let refused = leasehold::register(memory(schemes).aliases(aliases)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidOptions);
        assert!(refused.to_string().contains(why), "{refused}");
    }
    assert!(leasehold::kind_of("second:").is_err(), "a kind that was refused is not half registered");
}
