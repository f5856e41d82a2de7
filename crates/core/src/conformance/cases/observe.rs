use std::collections::HashSet;
use std::fmt::{Debug, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

use super::context::{AMPLE, SHORT, TestContext, eventually, patient, soon};
use crate::conformance::Op;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{LockOptions, Wait};

/// Every metric name and backend that was used in this process, every span, and every warning of a long wait.
#[derive(Debug, Default)]
struct Seen(Mutex<HashSet<String>>);

impl Seen {
    fn here() -> &'static Self {
        static SEEN: OnceLock<Seen> = OnceLock::new();
        SEEN.get_or_init(|| {
            // Where the test program has installed its own, these cases look at nothing new and fail, which is told.
            let _ = metrics::set_global_recorder(Witness);
            let _ = tracing::subscriber::set_global_default(Witness);
            Self::default()
        })
    }

    fn note(&self, what: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(what);
    }

    fn has(&self, what: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(what)
    }
}

struct Witness;

impl Witness {
    fn note(key: &Key) {
        for label in key.labels().filter(|label| label.key() == "backend") {
            Seen::here().note(format!("{} of {}", key.name(), label.value()));
        }
    }
}

impl Recorder for Witness {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Self::note(key);
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Self::note(key);
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Self::note(key);
        Histogram::noop()
    }
}

impl Subscriber for Witness {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("leasehold")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        Seen::here().note(format!("span {}", span.metadata().name()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        if fields.0.contains(" message=waiting long") {
            Seen::here().note(format!("event{} ", fields.0));
        }
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

pub(super) async fn c26_a_long_wait_names_the_holder(context: TestContext) -> Verdict {
    let seen = Seen::here();
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient().label("ada").reason("invoices")).await?;
    let told = || {
        let all = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_this_key = all.iter().filter(|told| told.contains(&format!(" key={:?} ", key.as_str())));
        of_this_key.cloned().collect::<Vec<_>>()
    };
    let short = LockOptions::new().wait(Wait::UpTo(SHORT / 30)).warn_after(AMPLE);
    ensure!(theirs.acquire(&key, &short).await?.is_none(), "a held key was granted");
    ensure!(told().is_empty(), "a short wait was told of: {:?}", told());
    let long = patient().warn_after(SHORT / 30);
    let release = async {
        eventually("the wait is told of", || async { Ok(!told().is_empty()) }).await?;
        Ok(guard.release().await?)
    };
    let (granted, released): (_, Result<_, Failure>) = futures::join!(theirs.take(&key, &long), release);
    released?;
    granted?.release().await?;
    let told = told();
    let backend = context.subject.capabilities().backend();
    for part in
        [&format!(" backend={backend:?} "), " holders=1 ", " holder=\"ada\" ", " reason=\"invoices\" ", " waited_ms="]
    {
        ensure!(told.len() == 1 && told[0].contains(part), "the one warning has not {part}: {told:?}");
    }
    Ok(())
}

pub(super) async fn c26_metrics_and_spans_have_the_same_names_everywhere(context: TestContext) -> Verdict {
    let seen = Seen::here();
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient().ttl(SHORT)).await?;
    // A connection that is made within the short wait could outlast it.
    theirs.take(&context.key_with("-another"), &patient()).await?.release().await?;
    let busy = LockOptions::new().wait(Wait::UpTo(SHORT / 3));
    let (head, behind) = futures::join!(theirs.acquire(&key, &busy), theirs.acquire(&key, &busy));
    ensure!(head?.is_none() && behind?.is_none(), "a held key was granted");
    eventually("a renewal", || async { Ok(ours.faults.count(Op::Renew, &key) > 0) }).await?;
    theirs.admin.force_release(&key).await?;
    soon("the loss is told", guard.lost()).await?;
    drop(guard);
    let backend = context.subject.capabilities().backend();
    for name in [
        "leasehold_acquire_wait_seconds",
        "leasehold_hold_seconds",
        "leasehold_renewals_total",
        "leasehold_losses_total",
        "leasehold_contended_total",
        "leasehold_queue_length",
        "leasehold_guards",
    ] {
        // What is told of a loss may come before what is counted of it.
        let recorded = || async { Ok(seen.has(&format!("{name} of {backend}"))) };
        eventually(&format!("{name} is recorded"), recorded).await?;
    }
    for name in ["acquire", "hold", "release"] {
        ensure!(seen.has(&format!("span {name}")), "no span named {name}");
    }
    Ok(())
}
