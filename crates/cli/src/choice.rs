use std::cell::Cell;
use std::env::VarError;

use leasehold_core::{Result, Wait};

use crate::address::{Address, read_password};
use crate::args::StoreArgs;
use crate::exit::Failure;
use crate::kind::{Kind, Tables, Target};
use crate::kinds::KINDS;
use crate::report::Report;
use crate::store::Store;

/// The store that is used when none is named. It is a directory of the user, so that the program works without a server.
const DEFAULT: &str = "file:";

/// The store that the user chose: its kind, its address, and the session to lock as.
pub(crate) struct Choice {
    pub(crate) kind: Kind,
    pub(crate) address: Address,
    session: Option<String>,
}

/// Reads the options, the environment and the password file, and returns the store that the user chose.
pub(crate) fn choose(args: &StoreArgs) -> Result<Choice, Failure> {
    let address = Address::new(args.backend.as_deref().filter(|url| !url.is_empty()).unwrap_or(DEFAULT));
    let kind = kind_of(&address)?;
    if args.session.is_some() && !kind.takes_session {
        return Err(Failure::Usage(format!(
            "the {} store has no sessions: --session needs --backend reentrant:redis://HOST",
            kind.name
        )));
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

impl Choice {
    pub(crate) async fn connect(&self) -> Result<Store> {
        (self.kind.connect)(Target { url: self.address.expose(), session: self.session.as_deref() }).await
    }

    /// Connects within `wait`, and tells once that the store cannot be reached yet.
    pub(crate) async fn connect_within(&self, wait: Wait, report: Report) -> Result<Store> {
        let told = Cell::new(wait == Wait::Never);
        let connect = || async {
            let connected = self.connect().await;
            if let Err(error) = &connected
                && error.is_transient()
                && !told.replace(true)
            {
                report.warn(&format!("{error}; trying again"));
            }
            connected
        };
        leasehold_core::connect_within(wait, connect).await
    }

    /// The maintenance of its tables; fails if the store has none.
    pub(crate) fn tables(&self) -> Result<Tables, Failure> {
        self.kind.tables.ok_or_else(|| {
            Failure::Usage(format!(
                "the {} store has no tables: this command is for mysql:, mysql-rw: and postgres:",
                self.kind.name
            ))
        })
    }
}

fn kind_of(address: &Address) -> Result<Kind, Failure> {
    let known = || KINDS.iter().flat_map(|kind| kind.schemes).copied().collect::<Vec<_>>().join(", ");
    let Some(scheme) = address.scheme() else {
        return Err(Failure::Usage(format!("the backend is not a URL; it starts with one of {}", known())));
    };
    let kind = KINDS.iter().find(|kind| kind.schemes.contains(&scheme) || kind.aliases.contains(&scheme)).copied();
    kind.ok_or_else(|| {
        let built = format!("this program was built with {}", known());
        Failure::Usage(match feature_of(scheme).filter(|feature| !BUILT_WITH.contains(feature)) {
            Some(feature) => format!("{built}; for {scheme}: build it with `--features {feature}` as well"),
            None => format!("unknown backend scheme {scheme:?}; {built}"),
        })
    })
}

/// The features of this package that know stores, as far as the program was built with them.
const BUILT_WITH: &[&str] = &[
    #[cfg(feature = "file")]
    "file",
    #[cfg(feature = "redis")]
    "redis",
    #[cfg(feature = "mysql")]
    "mysql",
    #[cfg(feature = "postgres")]
    "postgres",
];

/// The feature of this package that knows a scheme, whether or not the program was built with it.
fn feature_of(scheme: &str) -> Option<&'static str> {
    match scheme {
        "file" => Some("file"),
        "mysql" | "mysql-rw" => Some("mysql"),
        "postgres" | "postgresql" => Some("postgres"),
        "reentrant" | "redlock" => Some("redis"),
        _ => ["redis", "valkey"].iter().any(|name| scheme.starts_with(name)).then_some("redis"),
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
    fn every_scheme_has_a_feature_that_an_error_can_name() {
        for scheme in KINDS.iter().flat_map(|kind| kind.schemes.iter().chain(kind.aliases)) {
            assert!(feature_of(scheme).is_some(), "{scheme}");
        }
        assert_eq!(feature_of("mongodb"), None);
    }

    #[test]
    #[cfg(all(feature = "file", feature = "redis", feature = "mysql"))]
    fn no_feature_is_named_that_the_program_was_built_with() {
        for url in ["redis-cluter://h", "valkey+tls://h"] {
            let refused = kind_of(&Address::new(url)).err().unwrap().to_string();
            assert!(refused.contains("unknown backend scheme") && !refused.contains("--features"), "{refused}");
        }
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
