//! Text that is safe to show in terminals and logs.

use std::borrow::Cow;

/// A text on one line that does nothing to a terminal or a log: what is not printable is escaped, and so is the
/// backslash that escapes it.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_plain(c) { shown.push(c) } else { shown.extend(c.escape_debug()) }
    }
    Cow::Owned(shown)
}

fn is_plain(c: char) -> bool {
    matches!(c, '"' | '\'') || c.escape_debug().len() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printable_stays_as_it_is_and_the_rest_is_spelt() {
        for plain in ["", "invoice/42", "it's \"quoted\"", "Grüße, 世界"] {
            assert!(matches!(printable(plain), Cow::Borrowed(text) if text == plain));
        }
        assert_eq!(printable("a\nb\u{1b}[2J\u{7}\r\0"), r"a\nb\u{1b}[2J\u{7}\r\0");
        assert_eq!(printable("a\\nb"), r"a\\nb");
        assert_eq!(printable("\u{202e}txt\u{9b}\u{2028}"), r"\u{202e}txt\u{9b}\u{2028}");
    }
}
