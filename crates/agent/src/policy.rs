//! Who may lock what, and how much of it.

use crate::protocol::Refusal;

/// Which user or group may use which keys: a line for each, `WHO PREFIX [keys=N] [connections=N]`.
///
/// WHO is `user:NAME`, `group:NAME` or `*`; the number of a user or group will do, too. PREFIX is how the keys begin, or `*`
/// for every key. What no line allows is refused. `#` begins a comment.
///
/// ```
/// use leasehold_agent::Policy;
///
/// assert!(Policy::parse("group:billing invoice/ keys=10\nuser:ada *").is_ok());
/// assert!(Policy::parse("billing invoice/").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    who: Who,
    prefix: String,
    keys: Option<usize>,
    connections: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    Anybody,
    User(String),
    Group(String),
}

/// How much one user may have at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Keys that are held or waited for.
    pub keys: usize,
    /// Connections.
    pub connections: usize,
}

/// Where no line names a limit.
const LIMIT: usize = 100;

/// By which names and numbers a client is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) user: Vec<String>,
    pub(crate) groups: Vec<String>,
}

impl Policy {
    /// Allows everybody everything, within the default limits: the mode of the socket decides who comes.
    #[must_use]
    pub fn open() -> Self {
        let rule = Rule { who: Who::Anybody, prefix: String::new(), keys: None, connections: None };
        Self { rules: vec![rule] }
    }

    /// Reads the lines of a policy file.
    ///
    /// # Errors
    /// The number of a line that is none, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.split('#').next().unwrap_or("").trim()));
        let rules = lines.filter(|(_, line)| !line.is_empty());
        let rules = rules.map(|(at, line)| rule(line).map_err(|why| format!("line {at}: {why}")));
        Ok(Self { rules: rules.collect::<Result<_, _>>()? })
    }

    /// Whom the lines name and these two files do not know, such as a user that is misspelt.
    pub(crate) fn strangers(&self, passwd: &str, group: &str) -> Vec<String> {
        let knows = |accounts: &str, name: &str| {
            accounts.lines().any(|line| line.split(':').next() == Some(name)) || name.parse::<u32>().is_ok()
        };
        let stranger = |rule: &Rule| match &rule.who {
            Who::User(user) if !knows(passwd, user) => Some(format!("user:{user}")),
            Who::Group(name) if !knows(group, name) => Some(format!("group:{name}")),
            _ => None,
        };
        self.rules.iter().filter_map(stranger).collect()
    }

    /// Refuses a key that no line allows.
    pub(crate) fn check(&self, names: &Names, key: &str) -> Result<(), Refusal> {
        self.check_all(names, key, || format!("the key {key:?}"))
    }

    /// Refuses a list of keys that begin so, unless one line allows all of them.
    pub(crate) fn check_list(&self, names: &Names, prefix: &str) -> Result<(), Refusal> {
        self.check_all(names, prefix, || format!("all keys that begin with {prefix:?}; list a prefix that it allows"))
    }

    fn check_all(&self, names: &Names, prefix: &str, what: impl Fn() -> String) -> Result<(), Refusal> {
        let allowed = self.of(names).any(|rule| prefix.starts_with(&rule.prefix));
        let refused = || Refusal::refused(format!("the agent's policy does not allow {}", what()));
        allowed.then_some(()).ok_or_else(refused)
    }

    /// The limits of a user: the largest of those that the lines for it name, else the default.
    pub(crate) fn limits(&self, names: &Names) -> Limits {
        Limits {
            keys: self.of(names).filter_map(|rule| rule.keys).max().unwrap_or(LIMIT),
            connections: self.of(names).filter_map(|rule| rule.connections).max().unwrap_or(LIMIT),
        }
    }

    fn of<'p>(&'p self, names: &'p Names) -> impl Iterator<Item = &'p Rule> {
        self.rules.iter().filter(|rule| match &rule.who {
            Who::Anybody => true,
            Who::User(user) => names.user.contains(user),
            Who::Group(group) => names.groups.contains(group),
        })
    }
}

fn rule(line: &str) -> Result<Rule, String> {
    let mut fields = line.split_whitespace();
    let who = match fields.next().unwrap_or_default() {
        "*" => Who::Anybody,
        who => match who.split_once(':') {
            Some(("user", name)) if !name.is_empty() => Who::User(name.to_owned()),
            Some(("group", name)) if !name.is_empty() => Who::Group(name.to_owned()),
            _ => return Err(format!("{who:?} is neither user:NAME, nor group:NAME, nor *")),
        },
    };
    let prefix = fields.next().ok_or("the beginning of the keys is missing, or * for every key")?;
    let prefix = match prefix {
        "*" => String::new(),
        prefix if prefix.ends_with('*') => return Err(format!("{prefix:?} is how keys begin: leave the * out")),
        prefix => prefix.to_owned(),
    };
    let mut rule = Rule { who, prefix, keys: None, connections: None };
    for field in fields {
        let (limit, number) = match field.split_once('=') {
            Some(("keys", number)) => (&mut rule.keys, number),
            Some(("connections", number)) => (&mut rule.connections, number),
            _ => return Err(format!("{field:?} is neither keys=N nor connections=N")),
        };
        *limit = Some(number.parse().map_err(|_| format!("{field:?} has no number"))?);
    }
    Ok(rule)
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::corpus_of_text;

    use super::*;

    fn names(user: &[&str], groups: &[&str]) -> Names {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names { user: owned(user), groups: owned(groups) }
    }

    #[test]
    fn a_key_is_allowed_to_those_whom_a_line_names() {
        let policy = Policy::parse(
            "# who may what\nuser:ada invoice/ keys=2 connections=3\n\ngroup:100 night # a number\n* tmp/ keys=1",
        )
        .unwrap();
        let (ada, grace) = (names(&["ada", "1000"], &["users", "100"]), names(&["grace", "1001"], &["ada"]));
        for (who, key, allowed) in [
            (&ada, "invoice/42", true),
            (&ada, "nightly", true),
            (&ada, "tmp/x", true),
            (&ada, "invoice", false),
            (&grace, "invoice/42", false),
            (&grace, "tmp/x", true),
        ] {
            assert_eq!(policy.check(who, key).is_ok(), allowed, "{who:?} {key}");
        }
        assert_eq!(policy.limits(&ada), Limits { keys: 2, connections: 3 });
        assert_eq!(policy.limits(&grace), Limits { keys: 1, connections: LIMIT });
        assert!(Policy::open().check(&grace, "any").is_ok());
        assert!(Policy::parse("").unwrap().check(&ada, "any").is_err());
    }

    #[test]
    fn whom_the_host_does_not_know_is_told() {
        let policy = Policy::parse("user:ada *\nuser:adda *\nuser:1234 *\ngroup:ada *\ngroup:locks *\n* *").unwrap();
        let strangers = policy.strangers("root:x:0:0\nada:x:1000:100::/home/ada:/bin/sh\n", "locks:x:100:ada\n");
        assert_eq!(strangers, ["user:adda", "group:ada"]);
    }

    #[test]
    fn a_line_that_is_none_is_told_with_its_number() {
        for (line, why) in [
            ("ada *", "neither user:NAME"),
            ("user: *", "neither user:NAME"),
            ("user:ada", "is missing"),
            ("* tmp/*", "leave the * out"),
            ("* * key=1", "neither keys=N"),
            ("* * keys=many", "no number"),
            ("* * keys=-1", "no number"),
        ] {
            let told = Policy::parse(&format!("\n{line}")).unwrap_err();
            assert!(told.starts_with("line 2: ") && told.contains(why), "{told}");
        }
    }

    #[test]
    fn whatever_stands_in_a_policy_it_is_read_or_refused() {
        corpus_of_text(include_str!("../corpus/policies.txt"), |text| {
            if let Err(told) = Policy::parse(text) {
                assert!(told.starts_with("line "), "{told}");
            }
        });
    }
}
