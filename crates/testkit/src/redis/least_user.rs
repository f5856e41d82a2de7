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
    ///
    /// # Panics
    /// When there is none.
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
        self.rules.iter().map(String::as_str).filter(|rule| rule.starts_with('+'))
    }

    /// Whether the README says what goes on without this command.
    pub fn can_do_without(&self, command: &str) -> bool {
        self.spare.iter().any(|spare| spare == command)
    }

    /// Compares the commands with those that a backend needs, and with those that it can do without.
    ///
    /// # Panics
    /// When the README names others.
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

    /// Makes it on a server, but for some of its commands. How to connect as it.
    ///
    /// # Panics
    /// When the server does not take the rules.
    pub async fn make(&self, server: &Server, without: &[&str]) -> String {
        let rules = self.rules.iter().map(String::as_str).filter(|rule| !without.contains(rule));
        let words: Vec<&str> = ["ACL", "SETUSER", "app", "reset", "on", ">pw"].into_iter().chain(rules).collect();
        assert_eq!(server.ask(&words).await, Answer::Text("OK".into()), "{words:?}");
        server.url().replace("redis://", "redis://app:pw@")
    }
}
