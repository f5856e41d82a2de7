use std::ffi::OsString;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use leasehold::Kind;
use strsim::levenshtein;

/// Options of flock(1), `consul lock` and `etcdctl lock` that are none here, and what does the same.
const OPTIONS_ELSEWHERE: [(&[&str], &str); 9] = [
    (
        &["-c", "--command", "-shell"],
        "the command follows the key; a line for a shell is run by: leasehold run KEY -- sh -c 'LINE'",
    ),
    (&["-x", "-e", "--exclusive"], "leave it out: a lock is exclusive unless -s says otherwise"),
    (&["--timeout", "-timeout", "-try"], "leasehold run -w DUR limits the wait; --ttl DUR is the length of the lease"),
    (&["--nb", "--nonblocking"], "leasehold run -n gives up at once"),
    (&["-F", "--no-fork"], "leave it out: leasehold stays, to renew the lock and to release it"),
    (
        &["-u", "--unlock"],
        "the lock is released when the command ends; leasehold force-release KEY takes it away from others",
    ),
    (&["-pass-stdin"], "leave it out: the input is the command's"),
    (&["--endpoints", "-http-addr"], "--backend URL names the store, as does LEASEHOLD_BACKEND"),
    (
        &["--user", "--password"],
        "--backend etcd://USER@HOST names the user; the password is read from LEASEHOLD_PASSWORD or --password-file",
    ),
];

/// Names that stores have elsewhere, and the scheme that they have here.
const ELSEWHERE: [(&str, &str); 8] = [
    ("mariadb", "mysql"),
    ("pg", "postgres"),
    ("pgsql", "postgres"),
    ("psql", "postgres"),
    ("sqlite", "file"),
    ("sentinel", "redis-sentinel"),
    ("flock", "file"),
    ("unix", "agent"),
];

/// The ports by which a store is known that was named without a scheme.
const PORTS: [(&str, &str); 5] =
    [("6379", "redis"), ("26379", "redis-sentinel"), ("3306", "mysql"), ("5432", "postgres"), ("2379", "etcd")];

/// The refusal of an option, with the one that does the same here in place of the advice to pass it as a value: what is behind the
/// key belongs to the command.
pub(crate) fn advise(mut refused: Error, args: &[OsString]) -> Error {
    if refused.kind() != ErrorKind::UnknownArgument {
        return refused;
    }
    let tips = match refused.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips,
        _ => Vec::new(),
    };
    let tips = match elsewhere(&refused, args) {
        Some(tip) => {
            refused.remove(ContextKind::SuggestedArg);
            vec![tip.into()]
        }
        None => tips.into_iter().filter(|tip| !tip.to_string().starts_with("to pass ")).collect(),
    };
    if !tips.is_empty() {
        refused.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    refused
}

/// What does the same as the refused option, if it is one of another program.
fn elsewhere(refused: &Error, args: &[OsString]) -> Option<&'static str> {
    let Some(ContextValue::String(refused)) = refused.get(ContextKind::InvalidArg) else { return None };
    // Of `-timeout`, which is one option elsewhere and several here, only the first that is none is refused.
    let letter = refused.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let of_letters = |name: &str| !name.starts_with("--") && letter.is_some_and(|letter| name[1..].contains(letter));
    let names = args.iter().filter_map(|arg| arg.to_str()?.split('=').next()).take_while(|arg| *arg != "--");
    let mut names = names.filter(|name| name == refused || name.starts_with('-') && of_letters(name));
    names.find_map(|name| OPTIONS_ELSEWHERE.iter().find(|(options, _)| options.contains(&name)).map(|(_, tip)| *tip))
}

/// What was meant by the URL of a server in which the `//` is missing. It shows only the schemes before that.
pub(crate) fn without_slashes(url: &str, kinds: &[Kind]) -> Option<String> {
    if url.contains("//") {
        return None;
    }
    let mut schemes: Vec<_> = url.split(':').take_while(|part| is_known(kinds, part)).collect();
    if ["reentrant", "redlock"].contains(schemes.last()?) {
        schemes.push("redis");
    }
    Some(format!("{}://…", schemes.join(":")))
}

/// What somebody may have meant by an address under a scheme that no store has.
///
/// It shows nothing that may be a password: of the address only what stands before the first colon, and behind it a port that a
/// store is known by, or that is on this machine.
pub(crate) fn did_you_mean(url: &str, kinds: &[Kind]) -> Option<String> {
    let (scheme, rest) = url.split_once(':')?;
    let digits = rest.split('/').next().filter(|port| port.parse::<u16>().is_ok());
    if let Some(port) = digits {
        let known = PORTS.iter().find(|(of, _)| *of == port).map(|(_, scheme)| *scheme);
        let is_here = scheme == "localhost";
        let meant = known.unwrap_or("redis");
        let port = if known.is_some() || is_here { port } else { "PORT" };
        return is_known(kinds, meant).then(|| format!("{meant}://{scheme}:{port}"));
    }
    // As clients of etcd, and no others of these, name their servers.
    let etcd = [("http", "etcd"), ("https", "etcds")].into_iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name));
    if let Some((_, meant)) = etcd.filter(|(_, meant)| is_known(kinds, meant)) {
        return Some(format!("{meant}://…"));
    }
    let plain = scheme.to_ascii_lowercase().replace(['+', '.'], "-");
    let elsewhere = ELSEWHERE.iter().find(|(name, _)| *name == plain).map(|(_, scheme)| *scheme);
    let all = kinds.iter().flat_map(Kind::all_schemes);
    let meant = elsewhere.filter(|scheme| is_known(kinds, scheme)).or_else(|| {
        let near = all.map(|known| (levenshtein(known, &plain), known)).min_by_key(|(distance, _)| *distance)?;
        // A third of it may be wrong: more is another word.
        (near.0 * 3 <= plain.len()).then_some(near.1)
    })?;
    Some(if rest.starts_with("//") { format!("{meant}://…") } else { format!("{meant}:…") })
}

fn is_known(kinds: &[Kind], scheme: &str) -> bool {
    kinds.iter().flat_map(Kind::all_schemes).any(|known| known == scheme)
}
