use super::admin::listed;
use super::context::{TestContext, once, patient};
use crate::conformance::model::ENDINGS;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Clock, ErrorKind, LockKey, OwnerId, ReleaseOutcome};

pub(super) async fn c22_keys_that_look_alike_are_distinct(context: TestContext) -> Verdict {
    let ours = context.client().await?;
    let stem = context.key();
    let mut guards = Vec::new();
    for ending in ENDINGS {
        let key = LockKey::new(format!("{stem}{ending}"))?;
        let guard = ours.acquire(&key, &once()).await?;
        ensure!(guard.is_some(), "{key:?} was taken for one of {:?}", &ENDINGS[..guards.len()]);
        guards.push(guard);
    }
    // A column may take a whole key for a number, or for nothing.
    let namespace = TestContext::new_namespace();
    let ours = context.client_in(&namespace, Clock::system()).await?;
    for key in ["7", "007", "7.0", "+7", "0x7", "1000", "1e3", "null", "NULL", "true", "TRUE"] {
        let key = LockKey::new(key)?;
        let guard = ours.acquire(&key, &once()).await?;
        ensure!(guard.is_some(), "{key:?} was taken for another");
        guards.push(guard);
    }
    Ok(())
}

pub(super) async fn c22_awkward_keys_are_ordinary(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    let unique = OwnerId::random().to_hex();
    let longest = format!("{}{unique}", "é".repeat((LockKey::MAX_BYTES - unique.len()) / 2));
    let keys = [
        format!("}}{unique}"),
        format!("{{}}{unique}"),
        format!("{{a}}{unique}{{b"),
        format!("%7B{unique}%"),
        format!("'; DROP TABLE \"k\"; --{unique}"),
        format!("`{unique}\\\\"),
        format!("\0{unique}\r\n"),
        format!("../../{unique}"),
        format!(".{unique}"),
        format!("-{unique}*?[a]"),
        format!("{unique}:lock"),
        longest,
    ];
    for key in keys {
        let key = LockKey::new(key)?;
        let guard = ours.take(&key, &patient()).await?;
        theirs.finds_it_held(&key).await?;
        let seen = theirs.admin.inspect(&key).await?;
        ensure!(seen.key == key && seen.holders.len() == 1, "{key:?} is seen as {seen:?}");
        guard.release().await?;
        theirs.finds_it_free(&key).await?;
    }
    Ok(())
}

pub(super) async fn c22_bad_keys_are_refused(context: TestContext) -> Verdict {
    let ours = context.client().await?;
    for bad in [String::new(), "x".repeat(LockKey::MAX_BYTES + 1), "é".repeat(128)] {
        let kind = LockKey::new(bad.as_str()).err().map(|error| error.kind());
        ensure!(kind == Some(ErrorKind::InvalidKey), "{} bytes gave {kind:?}", bad.len());
        let kind = crate::LockerExt::lock(&*ours.locker, bad.as_str()).await.err().map(|error| error.kind());
        ensure!(kind == Some(ErrorKind::InvalidKey), "locking {} bytes gave {kind:?}", bad.len());
    }
    ensure!(ours.faults.all_steps() == 0, "something was sent");
    Ok(())
}

pub(super) async fn c22_namespaces_do_not_see_each_other(context: TestContext) -> Verdict {
    // Of its own, because this case may run twice at the same time.
    let base = TestContext::new_namespace();
    let (ours, key) = (context.client().await?, context.key());
    let (guard, mut held) = (ours.take(&key, &patient()).await?, Vec::new());
    for ending in ["", "n", "N", "n ", "é", "É", "-n", "_n", "%", "*", "[n-]n"] {
        // A name that a backend refuses meets no other.
        let theirs = match context.client_in(&format!("{base}{ending}"), Clock::system()).await {
            Err(_) if !ending.is_empty() => continue,
            theirs => theirs?,
        };
        theirs.sees_nobody(&key).await?;
        ensure!(theirs.admin.list("", None).await?.keys.is_empty(), "{ending:?}: a listing showed another namespace");
        let beside = theirs.acquire(&key, &once()).await?;
        ensure!(beside.is_some(), "namespace {ending:?} was taken for one of those before it");
        held.push((theirs, beside));
    }
    held[0].0.admin.force_release(&key).await?;
    Ok(guard.renew().await?)
}

pub(super) async fn c22_namespaces_that_begin_alike_do_not_meet(context: TestContext) -> Verdict {
    // They differ in the last of the bytes that a namespace may have.
    let long = format!("{}{}", OwnerId::random().to_hex(), "x".repeat(31));
    let client = async |ending| context.client_in(&format!("{long}{ending}"), Clock::system()).await;
    if let (Ok(one), Ok(other)) = (client("a").await, client("b").await) {
        let held = one.take(&context.key(), &patient()).await?;
        other.sees_nobody(held.key()).await?;
        other.take(held.key(), &once()).await?.release().await?;
        held.release().await?;
    }
    let base = TestContext::new_namespace();
    let there = context.client_in(&base, Clock::system()).await?;
    // What joins a namespace with a key: nothing, or what a store's names are joined with.
    for joint in ["", ":", "/", ".", "-"] {
        // A name that a backend refuses meets no other.
        let Ok(here) = context.client_in(&format!("{base}{joint}b"), Clock::system()).await else { continue };
        let ours = LockKey::new("c")?;
        for key in [format!("b{joint}c"), format!("{joint}b{joint}c")] {
            let guard = there.take(&LockKey::new(key)?, &patient()).await?;
            here.sees_nobody(&ours).await?;
            let beside = here.acquire(&ours, &once()).await?;
            for (namespace, client, theirs) in [("the longer", &here, &ours), ("the shorter", &there, guard.key())] {
                let shown = listed(client, "").await?;
                ensure!(
                    shown.keys().all(|seen| seen == theirs),
                    "{namespace} of {base}{joint}b and {base} lists {shown:?}"
                );
            }
            let Some(beside) = beside else {
                return Err(Failure(format!("{ours:?} of {base}{joint}b is {:?} of {base}", guard.key())));
            };
            beside.release().await?;
            let released = guard.release().await?;
            ensure!(released == ReleaseOutcome::Released, "a lock of {base} was lost: {released:?}");
        }
    }
    Ok(())
}
