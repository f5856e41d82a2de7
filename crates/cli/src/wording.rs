use std::borrow::Cow;

use leasehold::{Clock, Holder, Holders, Mode};
pub(crate) use leasehold_agent::HolderFields;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::duration::spoken;

/// Returns the text as it is if it is harmless, otherwise quoted with escapes: a key or label may contain newlines and
/// control sequences of terminals.
pub(crate) fn shown(text: &str) -> String {
    let quoted = format!("{text:?}");
    let plain = quoted.get(1..quoted.len() - 1) == Some(text) && text.trim() == text && !text.is_empty();
    if plain { text.to_owned() } else { quoted }
}

/// Describes the holders of a key: the first one, and how many more there are. `None` if nobody holds it.
pub(crate) fn holders(holders: &Holders) -> Option<String> {
    let first = holders.holders.first()?;
    Some(match holders.holders.len() {
        1 => holder(first),
        n => format!("{} and {} more", holder(first), n - 1),
    })
}

/// Describes one holder: `ada@db1 pid 7 (nightly report), 23 s left`.
pub(crate) fn holder(holder: &Holder) -> String {
    let mut text = holder.label.as_deref().map_or_else(|| "somebody".to_owned(), shown);
    if let Some(reason) = &holder.reason {
        text = format!("{text} ({})", shown(reason));
    }
    if holder.mode == Mode::Shared {
        text.push_str(", shared");
    }
    if let Some(left) = holder.remaining {
        text = format!("{text}, {} left", spoken(left));
    }
    text
}

/// The label of a program that names none.
pub(crate) fn default_label() -> String {
    let host = rustix::system::uname();
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let user = user.unwrap_or_else(|_| format!("uid{}", rustix::process::getuid().as_raw()));
    format!("{user}@{} pid {}", host.nodename().to_string_lossy(), std::process::id())
}

/// Cuts a text to `width` cells of a terminal; a text that was cut ends in `…`.
pub(crate) fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let ends = text.char_indices().map(|(at, _)| at);
    let end = ends.take_while(|end| text[..*end].width() < width).last();
    Cow::Owned(end.map_or_else(String::new, |end| format!("{}…", &text[..end])))
}

/// One object on one line.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).map(|line| line + "\n").unwrap_or_default()
}

/// One event on one line, with the time of it: milliseconds since 1970, by the clock of this machine.
pub(crate) fn json_event(event: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Stamped<'e, E> {
        #[serde(flatten)]
        event: &'e E,
        time_ms: u64,
    }
    json(&Stamped { event, time_ms: Clock::system().unix_millis() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_could_mislead_are_quoted() {
        for plain in ["nightly", "invoice/42", "root@db1 pid 7", "été", "it's"] {
            assert_eq!(shown(plain), plain);
        }
        for (text, quoted) in [
            ("", r#""""#),
            ("a\nb", r#""a\nb""#),
            ("\u{1b}[2J", r#""\u{1b}[2J""#),
            (" k", r#"" k""#),
            ("say \"hi\"", r#""say \"hi\"""#),
            ("a\u{202e}b", r#""a\u{202e}b""#),
        ] {
            assert_eq!(shown(text), quoted);
        }
    }

    #[test]
    fn what_a_holder_says_of_itself_is_quoted_too() {
        let mut reader = Holder::new(Mode::Shared);
        reader.reason = Some("nightly\treport".to_owned());
        assert_eq!(holder(&reader), r#"somebody ("nightly\treport"), shared"#);
    }

    #[test]
    fn a_text_is_cut_at_the_cell_and_says_so() {
        for (text, width, cell) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("abcd", 1, "…"),
            ("abcd", 0, ""),
            ("鍵鍵鍵", 6, "鍵鍵鍵"),
            ("鍵鍵鍵", 5, "鍵鍵…"),
            ("鍵鍵鍵", 4, "鍵…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("", 0, ""),
        ] {
            let shown = cut(text, width);
            assert_eq!(shown, cell, "{text} in {width}");
            assert!(shown.width() <= width);
        }
    }
}
