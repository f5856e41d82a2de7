use std::env::VarError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Admin, Backed, Capabilities, Locker, Result, RwLocker, SharedBackend};

use crate::address::{Address, read_password};
use crate::args::StoreArgs;
use crate::exit::Failure;
use crate::kinds::KINDS;

/// A directory of the user's, so that it works with no server.
const DEFAULT: &str = "file:";

/// A kind of store: how to recognise it, what it promises, and how to get at it.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// Its name in errors and tables.
    pub(crate) name: &'static str,
    /// What its URLs start with.
    pub(crate) schemes: &'static [&'static str],
    /// What they may start with, too.
    pub(crate) aliases: &'static [&'static str],
    /// The crate that it lives in.
    pub(crate) package: &'static str,
    /// When to use it, in a few words.
    pub(crate) purpose: &'static str,
    /// Whether its URL has a place for a password.
    pub(crate) takes_password: bool,
    /// Whether its owners are sessions with an id.
    pub(crate) takes_session: bool,
    /// What it promises, without asking it.
    pub(crate) capabilities: fn() -> Capabilities,
    pub(crate) connect: for<'u> fn(Place<'u>) -> Doing<'u, Store>,
    /// What makes the servers of this URL unsafe although they may grant locks, where anything can.
    pub(crate) examine: Option<Examine>,
    /// What to do about a server that refuses.
    pub(crate) cure: &'static str,
    /// What has to be done to its tables, where it has any.
    pub(crate) tables: Option<Tables>,
    /// What is known of its nodes, where it has several that vote.
    pub(crate) nodes: Option<Nodes>,
}

/// Where to connect, and as whom.
#[derive(Clone, Copy)]
pub(crate) struct Place<'u> {
    pub(crate) url: &'u str,
    pub(crate) session: Option<&'u str>,
}

/// The upkeep of a store that lives in tables.
#[derive(Clone, Copy)]
pub(crate) struct Tables {
    pub(crate) migrate: for<'u> fn(&'u str) -> Doing<'u, ()>,
    pub(crate) gc: for<'u> fn(&'u str, Duration) -> Doing<'u, u64>,
}

/// The nodes of a store in which a majority decides.
#[derive(Clone, Copy)]
pub(crate) struct Nodes {
    pub(crate) states: for<'u> fn(&'u str) -> Doing<'u, Vec<Finding>>,
    pub(crate) heal: for<'u> fn(&'u str) -> Doing<'u, Vec<Finding>>,
}

/// What `doctor` says of one thing that it looked at.
pub(crate) struct Finding {
    pub(crate) health: Health,
    pub(crate) text: String,
}

/// How bad it is; as a number, the exit code.
#[derive(Clone, Copy)]
pub(crate) enum Health {
    Well = 0,
    Warning = 1,
    Error = 2,
}

impl Health {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What is wrong with the servers of a URL.
pub(crate) type Examine = for<'u> fn(&'u str) -> Doing<'u, Vec<String>>;

pub(crate) type Doing<'u, T> = Pin<Box<dyn Future<Output = Result<T>> + 'u>>;

/// An open store, seen from all sides.
pub(crate) struct Store {
    pub(crate) locker: Arc<dyn Locker>,
    /// Where it grants shared locks.
    pub(crate) readers: Option<Arc<dyn RwLocker>>,
    pub(crate) admin: Arc<dyn Admin>,
    closing: Pin<Box<dyn Future<Output = ()>>>,
}

impl Store {
    /// A store that grants exclusive locks only.
    #[allow(dead_code, reason = "used or not, as the features say")]
    pub(crate) fn exclusive<T: Backed + 'static>(locks: T) -> Self {
        Self::of(Arc::new(locks), None)
    }

    /// A store that has readers too.
    #[allow(dead_code, reason = "used or not, as the features say")]
    pub(crate) fn shared<T: Backed<Backend: SharedBackend> + 'static>(locks: T) -> Self {
        let locks = Arc::new(locks);
        Self::of(Arc::clone(&locks), Some(locks))
    }

    fn of<T: Backed + 'static>(locks: Arc<T>, readers: Option<Arc<dyn RwLocker>>) -> Self {
        let engine = locks.engine().clone();
        let closing = Box::pin(async move { engine.close().await });
        Self { locker: Arc::clone(&locks) as _, readers, admin: locks, closing }
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &'static str {
        self.locker.capabilities().backend()
    }

    /// Sees through what is under way, within bounds: a store that is silent must not keep the caller waiting.
    pub(crate) async fn close(self) {
        const BOUND: Duration = Duration::from_secs(2);
        let _ = tokio::time::timeout(BOUND, self.closing).await;
    }
}

/// What the user means: a kind of store, where it is, and as whom to go there.
pub(crate) struct Choice {
    pub(crate) kind: Kind,
    pub(crate) address: Address,
    session: Option<String>,
}

/// The store that the user means, with its password from wherever it comes.
pub(crate) fn choose(args: &StoreArgs) -> Result<Choice, Failure> {
    let address = Address::new(args.backend.as_deref().filter(|url| !url.is_empty()).unwrap_or(DEFAULT));
    let kind = kind_of(&address)?;
    if args.session.is_some() && !kind.takes_session {
        return Err(Failure::Usage(format!("the {} store has no sessions; reentrant:redis://HOST has", kind.name)));
    }
    let address = match args.password_file.as_deref() {
        Some(_) if !kind.takes_password => {
            return Err(Failure::Usage(format!("the {} store takes no password", kind.name)));
        }
        Some(file) => address.with_password(&read_password(file)?, true)?,
        None => match std::env::var("LEASEHOLD_PASSWORD") {
            Ok(password) if kind.takes_password && !password.is_empty() => address.with_password(&password, false)?,
            Err(VarError::NotUnicode(_)) if kind.takes_password => {
                return Err(Failure::Usage("LEASEHOLD_PASSWORD is not UTF-8".to_owned()));
            }
            _ => address,
        },
    };
    Ok(Choice { kind, address, session: args.session.clone() })
}

impl Kind {
    /// The folder of its crate in the repository.
    pub(crate) fn folder(&self) -> &'static str {
        self.package.strip_prefix("leasehold-").unwrap_or(self.package)
    }
}

impl Choice {
    pub(crate) async fn connect(&self) -> Result<Store> {
        (self.kind.connect)(Place { url: self.address.expose(), session: self.session.as_deref() }).await
    }

    /// The upkeep of its tables.
    pub(crate) fn tables(&self) -> Result<Tables, Failure> {
        self.kind
            .tables
            .ok_or_else(|| Failure::Usage(format!("the {} store has no tables to look after", self.kind.name)))
    }
}

fn kind_of(address: &Address) -> Result<Kind, Failure> {
    let known = || KINDS.iter().flat_map(|kind| kind.schemes).copied().collect::<Vec<_>>().join(", ");
    let Some(scheme) = address.scheme() else {
        return Err(Failure::Usage(format!("the backend is not a URL; it starts with one of {}", known())));
    };
    let kind = KINDS.iter().find(|kind| kind.schemes.contains(&scheme) || kind.aliases.contains(&scheme)).copied();
    kind.ok_or_else(|| {
        Failure::Usage(format!("unknown backend scheme {scheme:?}; this program was built with {}", known()))
    })
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.locker).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_scheme_leads_to_one_kind_of_store() {
        let schemes: Vec<_> = KINDS.iter().flat_map(|kind| kind.schemes.iter().chain(kind.aliases)).collect();
        assert_eq!(schemes.iter().collect::<HashSet<_>>().len(), schemes.len());
    }

    #[test]
    fn a_kind_is_called_what_its_errors_call_it() {
        for kind in KINDS {
            assert_eq!((kind.capabilities)().backend(), kind.name);
        }
    }

    #[test]
    fn an_unknown_scheme_is_named_but_never_what_follows_it() {
        for (url, named) in [("mongodb://:pw@h", Some("mongodb")), ("pw@h:1", None), ("pw", None)] {
            let refused = kind_of(&Address::new(url)).err().unwrap().to_string();
            assert!(!refused.contains("pw"), "{refused}");
            assert!(named.is_none_or(|scheme| refused.contains(scheme)), "{refused}");
        }
    }
}
