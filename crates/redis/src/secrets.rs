use std::collections::BTreeSet;
use std::sync::Arc;

use fred::error::Error as DriverError;
use fred::types::config::{Config, ServerConfig};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

/// The passwords of a connection, to be kept out of all that is told of it: a server knows them, and may say anything.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Arc<[String]>);

const HIDDEN: &str = "(a password)";

impl Secrets {
    pub(crate) fn of(config: &Config) -> Self {
        let sentinels = match &config.server {
            ServerConfig::Sentinel { password, .. } => password.as_deref(),
            _ => None,
        };
        let passwords = [config.password.as_deref(), sentinels];
        let spelt = passwords.into_iter().flatten().filter(|password| !password.is_empty()).flat_map(spellings);
        let mut spelt: Vec<String> = spelt.collect::<BTreeSet<_>>().into_iter().collect();
        // One may be a part of another.
        spelt.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        Self(spelt.into())
    }

    /// The same text without them.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }

    /// The same error without them and on one line. To be called last: what an error means is in its words.
    pub(crate) fn keep_out_of(&self, error: &DriverError) -> DriverError {
        // A server that does not know a command quotes its arguments, and those of AUTH are a password; cut short, it
        // would not be found.
        let told = error.details().split(", with args beginning with").next().unwrap_or_default();
        let told: String = self.hide(told).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        DriverError::new(error.kind().clone(), told)
    }
}

/// What is written otherwise in the password of a URL.
const IN_URLS: &AsciiSet = &{
    let set =
        CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'/').add(b':').add(b';').add(b'<').add(b'=').add(b'>');
    set.add(b'?').add(b'@').add(b'[').add(b'\\').add(b']').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}')
};

/// In the forms in which it may come back: as it is, on one line, quoted, in a URL.
fn spellings(password: &str) -> [String; 8] {
    let quoted = password.escape_debug().to_string();
    let everything = utf8_percent_encode(password, NON_ALPHANUMERIC).to_string();
    let needed = utf8_percent_encode(password, IN_URLS).to_string();
    [
        password.to_owned(),
        password.replace(['\r', '\n'], " "),
        quoted.replace("\\'", "'"),
        quoted,
        in_small_digits(&everything),
        in_small_digits(&needed),
        everything,
        needed,
    ]
}

/// `%2f` instead of `%2F`.
fn in_small_digits(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        text + "%" + &digits.to_ascii_lowercase() + rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;

    fn secrets(url: &str) -> Secrets {
        Secrets::of(Endpoint::parse(url).expect("a good URL").config())
    }

    #[test]
    fn passwords_are_hidden_in_every_spelling_and_names_are_not() {
        let secrets = secrets("redis://ada:p%22w%2F%C3%A9%20%0Ax'y@h");
        for spelling in [
            "p\"w/é \nx'y",
            "p\"w/é  x'y",
            r#"p\"w/é \nx'y"#,
            r#"p\"w/é \nx\'y"#,
            "p%22w%2F%C3%A9%20%0Ax%27y",
            "p%22w%2F%C3%A9%20%0Ax'y",
            "p%22w%2f%c3%a9%20%0ax'y",
        ] {
            assert_eq!(secrets.hide(&format!("AUTH ada {spelling}!")), "AUTH ada (a password)!", "{spelling:?}");
        }
    }

    #[test]
    fn one_that_is_a_part_of_another_does_not_leave_the_rest() {
        let secrets = secrets("redis-sentinel://:hunter@h?sentinelServiceName=m&sentinelPassword=hunter2");
        assert_eq!(secrets.hide("hunter2 hunter"), "(a password) (a password)");
        assert_eq!(Secrets::default().hide("hunter2"), "hunter2");
    }
}
