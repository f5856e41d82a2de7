#![allow(clippy::doc_markdown, reason = "these comments are the help texts, which are plain text")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use leasehold::{LockKey, LockOptions, Wait, kind_of};
use rustix::process::Signal;

use crate::duration;
use crate::exit::Codes;
#[cfg(target_os = "linux")]
use crate::store_commands::AgentArgs;
use crate::store_commands::{AcquireArgs, BenchArgs, HoldArgs, ReleaseArgs, RenewArgs, WaitArgs};
use crate::suggestion::advise;
use crate::values::{Texts, key, lease, patience, period};
#[cfg(feature = "watch")]
use crate::watch::WatchArgs;

/// Run a command while holding a lock: on this machine, or on any number of them.
///
/// Without --backend the lock excludes other processes of this user on this machine; no server is needed. With
/// --backend it excludes everybody who uses the same store.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, after_long_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the command line of this process.
    pub(crate) fn of_this_process() -> Result<Self, clap::Error> {
        let args: Vec<_> = std::env::args_os().collect();
        let mut program = Self::command();
        let matches = program.try_get_matches_from_mut(&args).or_else(|_| {
            // Help and errors need what each command says of itself.
            program = Self::command();
            program.build();
            program.try_get_matches_from_mut(&args).map_err(|refused| advise(refused, &args))
        })?;
        let cli = Self::from_arg_matches(&matches).map_err(|refused| refused.format(&mut program))?;
        if let Command::Run(run) = &cli.command
            && run.max_hold.zip(run.min_hold).is_some_and(|(most, least)| least > most)
        {
            return Err(program.error(ErrorKind::ArgumentConflict, "--min-hold is longer than --max-hold"));
        }
        // "Nothing is held" would be told of another store than was meant. A key may look like a URL where the store is named.
        let is_named = matches.value_source("backend") == Some(ValueSource::CommandLine);
        if !is_named && cli.command.looks_for().is_some_and(is_store) {
            let why =
                "the URL of a store stands where a key or a prefix is expected; name the store with --backend URL";
            return Err(program.error(ErrorKind::ValueValidation, why));
        }
        Ok(cli)
    }
}

/// The end of the help of the whole program; the lines with examples are also in manual pages.
pub(crate) const EXAMPLES: &str = "\
Examples:
  leasehold run nightly -- pg_dump -f all.sql shop       wait for the lock, then dump
  leasehold run -n nightly -- ./report.sh                give up at once if it is held (exit 75)
  leasehold run -w 30s -E 0 nightly -- ./report.sh       wait 30 seconds; held is no failure
  leasehold run --min-hold 50s cron/mail -- ./mail.sh    once a minute, on whichever host is first
  leasehold run --once-per 1d -E 0 report -- ./report    once a day, also if the first try fails
  leasehold --backend redis://db1:6379 run k -- ./job    one lock for many machines
  leasehold run --permits 3 encode -- ./encode.sh        three of them at a time
  leasehold run --restart worker -- ./worker             keep it running on exactly one host
  leasehold inspect nightly                              who holds it, why, and for how long

Exit codes of `run`: the command's; 128+n if signal n ended it; 75 held by another (-E),
76 lost while the command ran, 69 store unreachable, 64 usage, 78 permission or configuration,
127 command not found, 126 not executable.";

/// The options that say where the locks are.
#[derive(Args, Debug)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// The store: file:/DIR, redis://HOST:PORT, ... (see `leasehold backends`) [default: file:, in a directory of yours]
    ///
    /// A password in the URL is visible to everybody who may run `ps`. Use LEASEHOLD_BACKEND, LEASEHOLD_PASSWORD or
    /// --password-file instead. With LEASEHOLD_BACKEND=none there is no default: a command without --backend is bad
    /// usage (exit 64).
    #[arg(long, global = true, value_name = "URL", env = "LEASEHOLD_BACKEND", hide_env_values = true)]
    pub(crate) backend: Option<String>,

    /// Read the store's password from the first line of FILE
    ///
    /// This password replaces one in the URL. Without this option the password in the URL is used, and if there is none
    /// the environment variable LEASEHOLD_PASSWORD. FILE must be a regular file that belongs to you or root and that
    /// nobody else can write to.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,

    /// Lock as the session ID, which may take a key again (with --backend reentrant:redis://HOST)
    ///
    /// Programs that name the same ID are one owner. Without this option each program is an owner of its own.
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) session: Option<String>,
}

// Only the arguments of the command that is asked for are built: those of all take longer than the rest.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Run(Box<RunArgs>),
    Hold(Box<HoldArgs>),
    #[cfg(target_os = "linux")]
    Agent(AgentArgs),
    Acquire(AcquireArgs),
    Renew(RenewArgs),
    Release(ReleaseArgs),
    Wait(WaitArgs),
    Inspect(InspectArgs),
    List(ListArgs),
    ForceRelease(ForceReleaseArgs),
    #[cfg(feature = "watch")]
    Watch(WatchArgs),
    /// Create the tables that a store in MySQL, MariaDB or PostgreSQL needs, if they do not exist
    ///
    /// Run it once for each store, as a user who may create tables: the programs that lock need fewer rights. Once more does no harm.
    Migrate,
    Gc(GcArgs),
    Doctor(DoctorArgs),
    Bench(BenchArgs),
    /// Let nodes of a redlock that lost their data vote again
    ///
    /// Waits until every lock that may have counted on a lost vote has ended, which takes as long as the longest lease in
    /// use, then copies the counters from a majority of the other nodes.
    Heal,
    Backends(BackendsArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

impl Command {
    /// The key, or the beginning of keys, whose holders the command looks for.
    fn looks_for(&self) -> Option<&str> {
        match self {
            Self::Inspect(inspect) => Some(inspect.key.as_str()),
            Self::Wait(wait) => Some(wait.key.as_str()),
            Self::ForceRelease(force) => Some(force.key.as_str()),
            Self::List(list) => Some(&list.prefix),
            #[cfg(feature = "watch")]
            Self::Watch(watch) => Some(&watch.prefix),
            _ => None,
        }
    }

    /// The exit codes that the user chose, or the default ones.
    pub(crate) fn codes(&self) -> Codes {
        match self {
            Self::Run(run) => run.codes,
            _ => Codes::default(),
        }
    }
}

/// Run a command while holding a lock
///
/// Waits for the lock, and for a store that cannot be reached yet (for ever, unless -n or -w is given), runs COMMAND, and
/// releases the lock when COMMAND ends.
/// Input, output and signals go to the command. If the lock is lost while the command runs, the command is terminated.
///
/// The command has LEASEHOLD_KEY, LEASEHOLD_TOKEN (a number that grows with every grant of the key), LEASEHOLD_BACKEND
/// (without a password) and, if the store has leases, LEASEHOLD_EXPIRES_IN_MS in its environment.
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(override_usage = "leasehold run [OPTIONS] KEY [--] COMMAND [ARGS]...")]
pub(crate) struct RunArgs {
    /// The name of the lock: any text of 1 to 255 bytes
    #[arg(value_parser = key)]
    pub(crate) key: LockKey,

    /// The command to run, with its arguments
    #[arg(required_unless_present = "shell", trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    /// Run STRING with `sh -c` instead, as flock(1) does
    #[arg(short = 'c', long = "command", value_name = "STRING", conflicts_with = "command")]
    shell: Option<OsString>,

    /// Give up at once if the lock is held, or the store cannot be reached; what it may have got all the same is given back
    /// first, for 2 s at most
    #[arg(short, long, conflicts_with = "wait")]
    nonblock: bool,

    /// Give up after DUR: 10 (seconds), 0.5, 500ms, 2s, 1m, 1h30m; also for a store that cannot be reached yet, where the
    /// attempt to connect that has begun is seen through
    #[arg(short, long, visible_alias = "timeout", value_name = "DUR", value_parser = duration::parse)]
    wait: Option<Duration>,

    /// Acquire it in exclusive mode, which is the default
    #[arg(short = 'x', long = "exclusive", conflicts_with = "shared")]
    _exclusive: bool,

    /// Acquire it in shared mode, together with other readers
    #[arg(short, long)]
    pub(crate) shared: bool,

    /// Lock this key as well: all of the keys, or none; can be given several times
    ///
    /// LEASEHOLD_TOKENS is then a JSON object with the token of each key; LEASEHOLD_KEY and LEASEHOLD_TOKEN are those of KEY. The loss of
    /// one lock counts as that of all.
    #[arg(short = 'k', long, value_name = "KEY", value_parser = key, conflicts_with_all = ["shared", "permits", "once_per"])]
    also: Vec<LockKey>,

    /// Let N commands run at a time instead of one; each program has to say the same N, up to 32
    ///
    /// Each command runs under a permit: a lock on KEY#00, KEY#01, ..., which is its LEASEHOLD_KEY. LEASEHOLD_TOKEN grows with
    /// every grant of that permit.
    #[arg(long, value_name = "N", conflicts_with = "shared")]
    pub(crate) permits: Option<usize>,

    /// Start COMMAND again whenever it has ended, on this host or on another that runs the same
    ///
    /// Of all hosts, one runs it at a time (with --permits: so many). The lock is released when COMMAND ends or is lost, so that a host
    /// which waits takes over; this one asks for it again after a pause of 1 s, which doubles up to 1 m while COMMAND ends
    /// within a minute. SIGTERM, SIGINT, SIGHUP and SIGQUIT end COMMAND and this program.
    #[arg(long, conflicts_with_all = ["nonblock", "wait", "shared"])]
    pub(crate) restart: bool,

    /// The lease: how long the store keeps the lock for a holder that is gone
    #[arg(long, value_name = "DUR", default_value = "30s", value_parser = lease)]
    ttl: Duration,

    /// Hold the lock for at most DUR: end the command before that
    #[arg(long, value_name = "DUR", value_parser = duration::parse_positive)]
    pub(crate) max_hold: Option<Duration>,

    /// Hold the lock for at least DUR, also if the command ends earlier
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) min_hold: Option<Duration>,

    /// If the command succeeds, keep the lock until DUR after its start: of all hosts, one runs it once in that time
    ///
    /// DUR is 1s to 24h. Whoever asks before that exits with 75, unless it waits (-w), and shows who ran it; with -E 0 that is no
    /// failure. The lock is free for another try if the command fails, if it is killed, or if this program is, which
    /// stays itself for a rest shorter than the lease. `file:`, `agent:` and `reentrant:` cannot keep a lock without a program.
    #[arg(long, value_name = "DUR", value_parser = period, conflicts_with_all = ["shared", "permits", "restart", "min_hold"])]
    pub(crate) once_per: Option<Duration>,

    /// What to do to the command and its process group when the lock is lost, or about to be
    ///
    /// If the store does not answer, and ahead of --max-hold, the command is ended before the lock ends, so that it does
    /// not run beside the next holder's command. It can still do so if the lock is released by force, or if this program
    /// is stopped or gets no processor time: then only LEASEHOLD_TOKEN protects.
    #[arg(long, value_name = "WHAT", default_value = "term")]
    pub(crate) on_lost: OnLost,

    /// Send SIGNAL to the command once when another program waits for the lock
    ///
    /// The store is asked once a second, and has to keep a queue: redis:, redis-rw:, etcd:, or an agent before one of these. With
    /// --on-wanted TERM, a command that works as long as nobody else wants to makes room; of permits and readers, each holder is told.
    #[arg(long, value_name = "SIGNAL", value_parser = wanted(), ignore_case = true)]
    pub(crate) on_wanted: Option<Signal>,

    /// Time between SIGTERM and SIGKILL with --on-lost term; ahead of the end of the lease, at most a third of --ttl
    #[arg(long, value_name = "DUR", default_value = "5s", value_parser = duration::parse)]
    pub(crate) kill_after: Duration,

    /// Let the lock end with this program, even if what COMMAND has started goes on (with a store of files)
    ///
    /// Without this option COMMAND inherits the open file of the lock, as from flock(1). If this program is killed with SIGKILL,
    /// the lock is held until COMMAND and all that it has started have ended.
    #[arg(short = 'o', long)]
    pub(crate) close: bool,

    #[command(flatten)]
    codes: Codes,

    #[command(flatten)]
    texts: Texts,

    /// Print how long it waited and who held the lock; twice: also print the log of the library
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Print events on standard error, one JSON object a line
    #[arg(long, conflicts_with = "verbose")]
    pub(crate) json: bool,
}

/// What happens to the command when the lock is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// SIGTERM, --kill-after before the lock ends, and then SIGKILL
    Term,
    /// SIGKILL
    Kill,
    /// Only a message
    Ignore,
}

/// The signals that a command may get when somebody waits.
fn wanted() -> impl TypedValueParser<Value = Signal> {
    const SIGNALS: [(&str, Signal); 5] = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("TERM", Signal::TERM),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
    ];
    let named = |name: String| SIGNALS.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
    PossibleValuesParser::new(SIGNALS.map(|(name, _)| name))
        .try_map(move |name| named(name).map(|(_, signal)| signal).ok_or("there is no such signal"))
}

impl RunArgs {
    /// How long it waits, for the lock and for a store that cannot be reached yet.
    pub(crate) fn patience(&self) -> Wait {
        let asks_once = self.once_per.is_some() && self.wait.is_none();
        patience(self.nonblock || asks_once, self.wait)
    }

    /// All keys, sorted, each once.
    pub(crate) fn keys(&self) -> Vec<LockKey> {
        let keys: BTreeSet<&LockKey> = self.also.iter().chain([&self.key]).collect();
        keys.into_iter().cloned().collect()
    }

    /// The command, with its arguments.
    pub(crate) fn command(&self) -> Vec<OsString> {
        let shell = self.shell.as_ref().map(|shell| vec!["sh".into(), "-c".into(), shell.clone()]);
        shell.unwrap_or_else(|| self.command.clone())
    }

    /// The options of the acquisition.
    pub(crate) fn options(&self) -> LockOptions {
        let period = self.once_per.map(|period| format!("once per {}", duration::spoken(period)));
        let mut options = self.texts.beside(LockOptions::new().ttl(self.ttl).wait(self.patience()), period);
        if let Some(cap) = self.max_hold {
            options = options.max_hold(cap);
        }
        options
    }
}

/// Show who holds a lock
#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    /// The key
    #[arg(value_parser = key)]
    pub(crate) key: LockKey,

    /// Exit with 1 if the lock is free
    #[arg(short, long)]
    pub(crate) exit_code: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the locks that are held
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Show only keys that start with PREFIX
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,

    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Release a lock by force, whoever holds it
///
/// The holder notices it at its next renewal, within a third of its lease; until then it still believes that it holds
/// the lock. Exits with 0 if somebody held the lock, and with 1 if it was free, or if --token is not of a grant that
/// holds it. Nobody keeps who released what by force, but the output and the log (RUST_LOG=warn, event "released by
/// force") of this command.
#[derive(Args, Debug)]
pub(crate) struct ForceReleaseArgs {
    /// The key
    #[arg(value_parser = key)]
    pub(crate) key: LockKey,

    /// Release only the grant with this token, as `leasehold inspect` shows it
    ///
    /// The store compares in the step that frees: whoever was granted the lock meanwhile, and every other reader, keeps
    /// it. A lease that is handed off inside a program has several tokens, which differ in their last six bits: any of
    /// them names it.
    #[arg(long, value_name = "N")]
    pub(crate) token: Option<u64>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Delete the rows of keys that nobody has locked for a long time
///
/// You need not run it: locks that have expired are granted again without it. Tokens keep growing.
#[derive(Args, Debug)]
pub(crate) struct GcArgs {
    /// Delete rows that have been idle for this long
    #[arg(long, value_name = "DUR", default_value = "168h", value_parser = duration::parse_positive)]
    pub(crate) older_than: Duration,
}

/// Check the store: what makes it unsafe, and how to repair that
///
/// It acquires and releases a lock on a key of its own, "leasehold doctor". Exits with 0 if all is well, with 1 for
/// warnings, and with 2 for errors.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// The lease that your programs ask for: is it long enough for this store?
    #[arg(long, value_name = "DUR", default_value = "30s", value_parser = lease)]
    pub(crate) ttl: Duration,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the stores that this program was built with, and the capabilities of each
#[derive(Args, Debug)]
pub(crate) struct BackendsArgs {
    /// Print a Markdown table
    #[arg(long)]
    pub(crate) markdown: bool,
}

/// Print a completion script for a shell
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    pub(crate) shell: Shell,
}

/// Print the manual page
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Print the page of this command instead of the program's
    pub(crate) command: Option<String>,
    /// Write the pages of the program and of all its commands into this directory, for a package
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) directory: Option<PathBuf>,
}

/// Whether the text is an address under which a store could be found.
fn is_store(text: &str) -> bool {
    (text.contains("://") || text.starts_with("file:/")) && kind_of(text).is_ok()
}
