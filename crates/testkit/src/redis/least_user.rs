use leasehold_core::{Health, Kind};

use super::fake_redis::FakeRedis;
use super::server::Server;
use crate::launch::resp::Answer;

/// The user that a README says is enough: what it may do, and what it may do without.
#[derive(Clone, Debug)]
pub struct LeastUser {
    rules: Vec<String>,
    spare: Vec<String>,
}

impl LeastUser {
    /// From the code block that begins with `ACL SETUSER`, and the sentences below it that begin with "Without" and name
    /// commands.
    pub fn of(readme: &str) -> Self {
        let (_, rest) = readme.split_once("ACL SETUSER ").expect("the least user");
        let (rules, below) = rest.split_once("```").expect("an end of the code");
        let rules = rules.split_whitespace().filter(|word| word.starts_with(['+', '-', '~', '&']));
        let below = below.split("\n## ").next().unwrap_or_default().replace('\n', " ");
        let spare = below.split("ithout `").skip(1).filter_map(|text| text.split('`').next());
        Self {
            rules: rules.map(str::to_owned).collect(),
            spare: spare.flat_map(str::split_whitespace).map(str::to_owned).collect(),
        }
    }

    /// The commands, each with its `+`.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.rules().filter(|rule| rule.starts_with('+'))
    }

    /// The rules, as `ACL SETUSER` takes them.
    pub(super) fn rules(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(String::as_str)
    }

    /// Whether the README says what goes on without this command.
    pub(super) fn can_do_without(&self, command: &str) -> bool {
        self.spare.iter().any(|spare| spare == command)
    }

    /// Compares the commands with those that a backend needs, and with those that it can do without.
    #[track_caller]
    pub fn is_one_with(&self, needed: &[&str], spare: &[&str]) {
        let mut told: Vec<_> = self.commands().map(|rule| rule.trim_start_matches('+')).collect();
        let mut all: Vec<_> = needed.iter().chain(spare).copied().collect();
        told.sort_unstable();
        all.sort_unstable();
        assert_eq!(told, all);
        for command in all {
            assert_eq!(spare.contains(&command), self.can_do_without(&format!("+{command}")), "{command}");
        }
    }

    /// Compares the commands with those that `doctor` misses where the server lets a user send none: with what it calls an error,
    /// and with what it warns of. The URL of such a server is behind `scheme`.
    pub async fn is_one_with_doctor(&self, kind: &Kind, scheme: &str) {
        let server = FakeRedis::start(|words| Some(denies_all(words))).await;
        let examine = kind.examine.expect("something to look for");
        let findings = examine(&format!("{scheme}{}", server.url())).await.expect("a connection");
        let missed = |health| {
            let of_rights = findings.iter().filter(move |told| told.id == "privilege" && told.health == health);
            of_rights.filter_map(|told| told.cure.as_ref()?.strip_prefix("ACL SETUSER default +")).collect::<Vec<_>>()
        };
        self.is_one_with(&missed(Health::Error), &missed(Health::Warning));
    }

    /// Makes it on a server, but for some of its commands. How to connect as it.
    pub async fn make(&self, server: &Server, without: &[&str]) -> String {
        let rules = self.rules().filter(|rule| !without.contains(rule));
        let words: Vec<&str> = ["ACL", "SETUSER", "app", "reset", "on", ">pw"].into_iter().chain(rules).collect();
        assert_eq!(server.ask(&words).await, Answer::Text("OK".into()), "{words:?}");
        server.url().replace("redis://", "redis://app:pw@")
    }
}

/// Answers the script of `doctor`, which asks for the commands that a user may not send, with all of them.
fn denies_all(words: &[&str]) -> Vec<u8> {
    match words {
        ["EVAL", script, "1", _, commands @ ..] if script.contains("acl_check_cmd") => {
            let places = (1..=commands.len()).map(|place| format!("+{place}\r\n")).collect::<Vec<_>>();
            format!("*{}\r\n{}", commands.len(), places.concat()).into()
        }
        ["SCAN", ..] => "*2\r\n$1\r\n0\r\n*0\r\n".into(),
        _ => FakeRedis::greeting(words).unwrap_or_else(|| "+OK\r\n".into()),
    }
}
