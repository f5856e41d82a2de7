use std::cell::Cell;
use std::env::VarError;
use std::io::{self, IsTerminal};
use std::time::Duration;

use leasehold::{
    Address, Capability, Error, ErrorKind, Kind, Locker, Locks, Result, Tables, Target, UnknownScheme, Wait, kind_of,
    kinds,
};

use crate::args::StoreArgs;
use crate::exit::Failure;
use crate::password::read_password;
use crate::report::Report;
use crate::suggestion::{did_you_mean, without_slashes};

/// The store that is used when none is named. It is a directory of the user, so that the program works without a server.
const DEFAULT: &str = "file:";

/// What stands in place of a URL for no store at all, so that a command that names none is refused.
const NONE: &str = "none";

/// The store that the user chose: its kind, its address, and the session to lock as.
pub(crate) struct Choice {
    pub(crate) kind: Kind,
    pub(crate) address: Address,
    session: Option<String>,
    /// Whether the user named it. If not, it is [`DEFAULT`].
    is_named: bool,
}

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To show, or to release, what others hold. Where nobody has locked anything, nothing is created.
    Look,
    /// To hold locks.
    Lock,
    /// To hold locks for a command, which keeps them as far as the store allows that when this program is killed.
    Run,
}

/// Reads the options, the environment and the password file, and returns the store that the user chose.
pub(crate) fn choose(args: &StoreArgs) -> Result<Choice, Failure> {
    let named = args.backend.as_deref();
    let names_none = match named {
        Some(NONE) => "no store is named, and LEASEHOLD_BACKEND=none takes the default away: use --backend URL",
        // A variable that is not set, as in `--backend "$STORE"`, must not lead to another store than was meant.
        Some("") => "the URL in --backend or LEASEHOLD_BACKEND is empty: name a store, or say file: for this machine's",
        _ => "",
    };
    if !names_none.is_empty() {
        return Err(Failure::Usage(names_none.to_owned()));
    }
    let address = Address::new(named.unwrap_or(DEFAULT));
    let kind = kind_of(address.expose()).map_err(|unknown| refuse(address.expose(), &unknown))?;
    if kind.takes_password
        && let Some(meant) = without_slashes(address.expose(), &kinds())
    {
        return Err(Failure::Usage(format!("the URL of the {} store lacks `//`: did you mean {meant}?", kind.name)));
    }
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
        Some(file) => with_password(address, &read_password(file)?, true)?,
        None => match std::env::var("LEASEHOLD_PASSWORD") {
            Ok(password) if kind.takes_password && !password.is_empty() => with_password(address, &password, false)?,
            Err(VarError::NotUnicode(_)) if kind.takes_password => {
                return Err(Failure::Usage("LEASEHOLD_PASSWORD is not UTF-8".to_owned()));
            }
            _ => address,
        },
    };
    Ok(Choice { kind, address, session: args.session.clone(), is_named: named.is_some() })
}

fn with_password(address: Address, password: &str, replace: bool) -> Result<Address, Failure> {
    let refuse = |_| Failure::Usage("the password does not fit into the backend's URL".to_owned());
    address.with_password(password, replace).map_err(refuse)
}

impl Choice {
    /// What the store is called where people and programs read it: the URL without passwords, with the default directory where
    /// none is named.
    pub(crate) fn shown(&self) -> String {
        match self.address.public() {
            #[cfg(feature = "file")]
            DEFAULT => leasehold::file::FileLocks::default_dir()
                .map_or_else(|_| DEFAULT.to_owned(), |dir| format!("{DEFAULT}{}", dir.display())),
            // An address of which it is not certain what is a password.
            "…" => format!("{}:…", self.kind.name),
            public => public.to_owned(),
        }
    }

    /// Says which store is used if the user named none. People at a terminal know; a cron job whose variable is missing must
    /// not lock on its own machine in silence.
    pub(crate) fn tell_of_default(&self, report: Report) {
        if !self.is_named && !io::stdin().is_terminal() {
            report.warn(&format!("no store is named, so this locks in {}; --backend names one", self.shown()));
        }
    }

    pub(crate) async fn connect(&self, purpose: Purpose) -> Result<Locks> {
        #[cfg(feature = "file")]
        if self.kind.name == leasehold::file::KIND.name {
            return self.open_files(purpose);
        }
        let _ = purpose;
        let target = Target::new(self.address.expose()).session(self.session.as_deref());
        (self.kind.connect)(target).await.map_err(|error| self.located(error))
    }

    #[cfg(feature = "file")]
    fn open_files(&self, purpose: Purpose) -> Result<Locks> {
        let files = leasehold::file::FileLocks::builder().url(self.address.expose())?;
        let files = match purpose {
            // The directory of the user cannot be mistyped.
            Purpose::Look if self.address.public() != DEFAULT => files.existing(),
            Purpose::Run => files.inherited(),
            Purpose::Look | Purpose::Lock => files,
        };
        files.open().map(Locks::shared)
    }

    /// The error with the address of the store, if it does not name that already.
    fn located(&self, error: Error) -> Error {
        let is_of_a_server =
            matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Indeterminate | ErrorKind::Backend);
        let shown = self.shown();
        let server = shown.rsplit_once("://").map_or(shown.as_str(), |(_, rest)| rest);
        let server = server.split(['/', '?', ',']).next().unwrap_or_default();
        let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
        if !is_of_a_server || server.is_empty() || error.to_string().contains(server) {
            error
        } else {
            error.at(&shown)
        }
    }

    /// Connects within `wait`, and tells once that the store cannot be reached yet.
    pub(crate) async fn connect_within(&self, purpose: Purpose, wait: Wait, report: Report) -> Result<Locks> {
        let told = Cell::new(matches!(wait, Wait::Never | Wait::UpTo(Duration::ZERO)));
        let connect = || async {
            let connected = self.connect(purpose).await;
            if let Err(error) = &connected
                && error.is_transient()
                && !told.replace(true)
            {
                report.warn(&format!("{error}; trying again"));
            }
            connected
        };
        leasehold::connect_within(wait, connect).await
    }

    /// The maintenance of its tables; fails if the store has none.
    pub(crate) fn tables(&self) -> Result<Tables, Failure> {
        self.kind.tables.ok_or_else(|| {
            let kinds = kinds();
            let schemes = kinds.iter().filter(|kind| kind.tables.is_some()).flat_map(|kind| kind.schemes);
            let with_tables: Vec<_> = schemes.map(|scheme| format!("{scheme}:")).collect();
            let (kind, with_tables) = (self.kind.name, with_tables.join(", "));
            Failure::Usage(format!("the {kind} store has no tables: this command is for {with_tables}"))
        })
    }
}

/// Waits until the operations under way have ended, for 2 s at most: a store that is silent must not keep the user waiting.
pub(crate) async fn close(store: &Locks) {
    const BOUND: Duration = Duration::from_secs(2);
    let _ = tokio::time::timeout(BOUND, store.close()).await;
}

/// An address that names no kind of store, in the words of this program's options and of its own features.
fn refuse(url: &str, unknown: &UnknownScheme) -> Failure {
    let known = unknown.known.join(", ");
    Failure::Usage(match (&unknown.scheme, unknown.feature) {
        (None, _) => {
            format!("the backend is not a URL such as redis://HOST:6379 or file:/DIR; it starts with one of {known}")
        }
        (Some(scheme), Some(feature)) => {
            format!("this program was built with {known}; for {scheme}: build it with `--features {feature}` as well")
        }
        (Some(scheme), None) => match did_you_mean(url, &kinds()) {
            Some(meant) => format!("unknown backend scheme {scheme:?}: did you mean {meant}?"),
            None => format!("unknown backend scheme {scheme:?}; this program was built with {known}"),
        },
    })
}

/// Refuses a store in which no lock outlives its program.
pub(crate) fn can_detach(locks: &Locks, operation: &'static str) -> Result<(), Failure> {
    let capabilities = locks.capabilities();
    let Some(why) = capabilities.why_not(Capability::Detach) else { return Ok(()) };
    let error = Error::new(ErrorKind::Unsupported, operation).with_backend(capabilities.backend());
    Err(error.detail(format!("no lock outlives its program here: {why}")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_the_program_lacks_is_named() {
        let mut unknown = kind_of("rods://:pw@h").unwrap_err();
        unknown.feature = Some("fishing");
        let refused = refuse("rods://:pw@h", &unknown).to_string();
        assert!(refused.ends_with("; for rods: build it with `--features fishing` as well"), "{refused}");
    }
}
