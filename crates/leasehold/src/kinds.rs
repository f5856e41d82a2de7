use std::sync::{PoisonError, RwLock};

use leasehold_core::{Error, ErrorKind, Kind, Result};

use crate::address::{is_scheme, scheme};
use crate::backends::{BUILT_IN, FEATURES};
use crate::unknown_scheme::UnknownScheme;

/// The kinds of store that the program registered.
static REGISTERED: RwLock<Vec<Kind>> = RwLock::new(Vec::new());

/// Every kind of store that this build and this process know: those of the enabled features, and the registered ones.
///
/// ```
/// use leasehold::Capability;
///
/// for kind in leasehold::kinds() {
///     let capabilities = (kind.capabilities)();
///     println!("{} ({}): readers {}", kind.name, kind.purpose, capabilities.has(Capability::Shared));
/// }
/// ```
pub fn kinds() -> Vec<Kind> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    BUILT_IN.iter().chain(registered.iter()).copied().collect()
}

/// The kind of the store that a URL names: how to connect to it, examine it, and look after its tables and nodes.
///
/// ```
/// assert_eq!(leasehold::kind_of("file:/var/lock/app")?.name, "file");
/// let unknown = leasehold::kind_of("mongodb://ada:secret@h").unwrap_err();
/// assert!(unknown.to_string().starts_with("unknown scheme \"mongodb\"; this build knows file"));
/// # Ok::<(), leasehold::UnknownScheme>(())
/// ```
///
/// # Errors
/// [`UnknownScheme`], which names the feature to add where there is one.
pub fn kind_of(url: &str) -> Result<Kind, UnknownScheme> {
    find(&kinds(), url)
}

fn find(kinds: &[Kind], url: &str) -> Result<Kind, UnknownScheme> {
    let scheme = scheme(url);
    if let Some(kind) = scheme.and_then(|scheme| kinds.iter().find(|kind| kind.knows(scheme))) {
        return Ok(*kind);
    }
    Err(UnknownScheme {
        scheme: scheme.map(str::to_owned),
        feature: scheme.and_then(feature_of),
        known: kinds.iter().flat_map(|kind| kind.schemes).copied().collect(),
    })
}

/// Makes a kind of store known to [`connect`](crate::connect), [`kind_of`] and [`kinds`], in the whole process and for good.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold::Result<()> {
/// use leasehold::{Kind, Locker, LockerExt, Locks, Memory};
///
/// leasehold::register(Kind::new("memory", &["memory"], || Memory::new().capabilities(), |_target| {
///     Box::pin(async { Ok(Locks::shared(Memory::new())) })
/// }))?;
/// let locks = leasehold::connect("memory:").await?;
/// locks.lock("invoice/42").await?.release().await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`InvalidOptions`](ErrorKind::InvalidOptions) if one of its schemes is taken, also by a feature that is not built in, if a
/// scheme could not begin a URL, or if it has none. Nothing is registered then.
pub fn register(kind: Kind) -> Result<()> {
    let refuse = |why: String| {
        let named = Error::new(ErrorKind::InvalidOptions, "register").with_backend(kind.name);
        Err(named.detail(why))
    };
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if kind.schemes.is_empty() {
        return refuse("it has no scheme".to_owned());
    }
    for (at, scheme) in kind.all_schemes().enumerate() {
        let taken = feature_of(scheme).is_some()
            || registered.iter().any(|other| other.knows(scheme))
            || kind.all_schemes().take(at).any(|other| other == scheme);
        if taken {
            return refuse(format!("the scheme {scheme}: is taken"));
        }
        if !is_scheme(scheme) {
            return refuse(format!("{scheme:?} cannot be the scheme of a URL"));
        }
    }
    registered.push(kind);
    Ok(())
}

/// The feature of this crate that knows a scheme, whether or not it is built in.
fn feature_of(scheme: &str) -> Option<&'static str> {
    FEATURES.iter().find(|(_, schemes)| schemes.contains(&scheme)).map(|(feature, _)| *feature)
}
