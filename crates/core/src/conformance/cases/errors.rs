use super::context::{TestContext, once, patient};
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op};
use crate::{Cursor, ErrorKind};

pub(super) async fn c23_errors_name_key_operation_and_backend(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let backend = context.subject.capabilities().backend();
    ours.faults.next(Op::TryAcquire, Fault::Refuse(ErrorKind::Unavailable), 1);
    let refused = ours.acquire(&key, &once()).await;
    let Err(error) = refused else { return Err(Failure("a refused claim was no error".into())) };
    ensure!(error.operation() == "acquire", "{:?}", error.operation());
    ensure!(error.backend() == Some(backend), "{:?}", error.backend());
    ensure!(error.lock_key() == Some(&key), "{:?}", error.lock_key());
    let text = error.to_string();
    ensure!(text.contains(backend) && text.contains(key.as_str()) && !text.contains('\n'), "{text:?}");
    Ok(())
}

pub(super) async fn c23_owner_ids_are_not_shown(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    let owner = ours.faults.steps(Op::TryAcquire, &key).pop().ok_or_else(|| Failure("no claim was seen".into()))?.owner;
    // A client that knows the owner id can release the lock.
    let shown = format!("{guard:?} {:?} {:?} {owner:?}", ours.locker, ours.admin.inspect(&key).await?);
    ensure!(!shown.contains(&owner.to_hex()), "{shown}");
    Ok(())
}

pub(super) async fn c24_odd_listings_do_not_panic(context: TestContext) -> Verdict {
    let ours = context.client().await?;
    for cursor in ["", "0", "no such place", "18446744073709551616", "-1", "\0", "😀", "9:9:9"] {
        // An answer or a typed error; a cursor from elsewhere promises neither.
        let _ = ours.admin.list("", Some(&Cursor(cursor.into()))).await;
    }
    for prefix in ["\0", "%", "*", "[", "\\", "😀", "{", &"x".repeat(1000)] {
        ours.admin.list(prefix, None).await?;
    }
    Ok(())
}
