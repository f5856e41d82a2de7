//! Passwords of a connection, and how they stay out of every message.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::printable::printable;
use crate::{Error, ErrorKind, Result};

/// The passwords of a connection, to be kept out of all that is told of it: a server knows them, and may say anything.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[String]>);

/// In place of a whole text. One that lacks the password alone would tell it where the password is a word of that text, or a part
/// of one: "using (a password)assword".
const HIDDEN: &str = "(withheld: a password is in these words)";

impl Secrets {
    /// These passwords, as they are. Empty ones are none.
    pub fn of<'p>(passwords: impl IntoIterator<Item = &'p str>) -> Self {
        let spelt = passwords.into_iter().filter(|password| !password.is_empty()).flat_map(spellings);
        Self(spelt.collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Whether what is sent to this host passes no network, so that nobody on the way can read a password: it is `localhost`, or an
    /// address of the loopback interface.
    pub fn stay_on_this_machine(host: &str) -> bool {
        let host = host.trim_matches(['[', ']']);
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// The same text, or, if one of them is in it, other words in its place: for [`Error::detail`](crate::Error::detail), which
    /// escapes by itself.
    #[must_use]
    pub fn hide(&self, text: &str) -> String {
        let is_told = self.0.iter().any(|secret| text.contains(secret));
        if is_told { HIDDEN } else { text }.to_owned()
    }

    /// What [`hide`](Self::hide) leaves of a text, on one line and with nothing that moves a cursor, for
    /// [`Error::caused_by`](crate::Error::caused_by): causes are shown by who knows nothing of servers.
    #[must_use]
    pub fn quote(&self, text: &str) -> String {
        printable(&self.hide(text)).into_owned()
    }

    /// Checks that user and password of this URL are percent-encoded, before any of it is looked up: a `/`, `?` or `#` in a
    /// password ends the host, and what follows it would be shown as something else.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`], in words that show none of it.
    pub fn check_encoded(url: &str, operation: &'static str) -> Result<()> {
        let place = url.split_once("://").map_or(url, |(_, place)| place);
        let rest = place.find(['/', '?', '#']).map_or("", |end| &place[end..]);
        if rest.contains('@') {
            return Err(Error::new(ErrorKind::InvalidOptions, operation).detail(
                "there is an `@` behind the host: percent-encode user and password, `/` as %2F, `?` as %3F, `#` as %23, \
                 and an `@` anywhere as %40",
            ));
        }
        Ok(())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
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

    #[test]
    fn passwords_are_hidden_in_every_spelling_and_names_are_not() {
        let secrets = Secrets::of(["p\"w/é \nx'y", ""]);
        for spelling in [
            "p\"w/é \nx'y",
            "p\"w/é  x'y",
            r#"p\"w/é \nx'y"#,
            r#"p\"w/é \nx\'y"#,
            "p%22w%2F%C3%A9%20%0Ax%27y",
            "p%22w%2F%C3%A9%20%0Ax'y",
            "p%22w%2f%c3%a9%20%0ax'y",
        ] {
            assert_eq!(secrets.hide(&format!("AUTH ada {spelling}!")), HIDDEN, "{spelling:?}");
        }
        assert_eq!(secrets.hide("AUTH ada p w x!"), "AUTH ada p w x!");
    }

    /// A text that only lacks the password shows how long it is, and which word it completes.
    #[test]
    fn what_is_told_is_the_same_whatever_the_password_and_wherever_it_was() {
        const SAID: &str = "Access denied for user 'ada'@'localhost' (using password: YES)";
        for password in ["p", "a", " ", "'", "password", "(using password", "YES)", SAID] {
            assert_eq!(Secrets::of([password]).hide(SAID), HIDDEN, "{password:?}");
        }
        for password in ["x", "Password", "hunter2", ""] {
            assert_eq!(Secrets::of([password]).hide(SAID), SAID, "{password:?}");
        }
    }

    #[test]
    fn one_that_is_a_part_of_another_does_not_leave_the_rest() {
        let secrets = Secrets::of(["hunter", "hunter2"]);
        assert_eq!(secrets.hide("hunter2 hunter"), HIDDEN);
        assert_eq!(Secrets::default().hide("hunter2"), "hunter2");
    }

    #[test]
    fn loopback_is_no_network_and_what_only_looks_like_it_is() {
        for here in ["localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"] {
            assert!(Secrets::stay_on_this_machine(here), "{here}");
        }
        for elsewhere in
            ["", "db1", "localhost.example.com", "127.0.0.1.example.com", "10.0.0.1", "0.0.0.0", "::", "127.1"]
        {
            assert!(!Secrets::stay_on_this_machine(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn a_quotation_is_on_one_line_and_does_nothing_to_a_terminal() {
        let secrets = Secrets::of(["hun\nter2"]);
        let said = "no\n\u{1b}]0;\u{7}\u{202e}hun";
        assert_eq!(secrets.quote(said), r"no\n\u{1b}]0;\u{7}\u{202e}hun");
        for spelling in ["hun\nter2", "hun%0Ater2"] {
            assert_eq!(secrets.quote(&format!("{said}{spelling}")), HIDDEN);
        }
        assert_eq!(format!("{secrets:?}"), "Secrets");
    }
}
