//! The JSON that is kept beside a grant: one object, of which only the members that are strings are read.

/// Appends the text as a JSON string, with its quotes.
pub(super) fn push_quoted(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            control if control < ' ' => {
                let digit = |shift: u32| char::from_digit(u32::from(control) >> shift & 15, 16);
                json.push_str("\\u00");
                json.extend([digit(4), digit(0)].into_iter().flatten());
            }
            other => json.push(other),
        }
    }
    json.push('"');
}

/// The members of an object whose values are strings, by name. Others are skipped, as a newer version may write more.
/// `None` if the text does not read as an object.
pub(super) fn string_members(json: &str) -> Option<Vec<(String, String)>> {
    let mut reader = Reader { rest: json };
    let mut members = Vec::new();
    reader.take('{')?;
    if reader.take('}').is_none() {
        loop {
            let name = reader.string()?;
            reader.take(':')?;
            match reader.string() {
                Some(value) => members.push((name, value)),
                None => reader.skip_value()?,
            }
            if reader.take(',').is_none() {
                reader.take('}')?;
                break;
            }
        }
    }
    reader.at_token().is_empty().then_some(members)
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    /// What is left, from the next character on that is no space.
    fn at_token(&self) -> &'t str {
        self.rest.trim_start_matches([' ', '\t', '\n', '\r'])
    }

    /// Goes behind this character if it is the next one.
    fn take(&mut self, wanted: char) -> Option<()> {
        self.rest = self.at_token().strip_prefix(wanted)?;
        Some(())
    }

    /// Goes behind a string and returns its text. Stays where it is if there is none.
    fn string(&mut self) -> Option<String> {
        let mut characters = self.at_token().strip_prefix('"')?.chars();
        let mut text = String::new();
        loop {
            match characters.next()? {
                '"' => break,
                '\\' => text.push(escaped(&mut characters)?),
                control if control < ' ' => return None,
                other => text.push(other),
            }
        }
        self.rest = characters.as_str();
        Some(text)
    }

    /// Goes behind a value. It counts brackets and does not call itself: a text can be nested more deeply than the stack is.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            let token = self.at_token();
            match token.chars().next()? {
                '"' => drop(self.string()?),
                '{' | '[' => {
                    depth += 1;
                    self.rest = &token[1..];
                }
                '}' | ']' => {
                    depth = depth.checked_sub(1)?;
                    self.rest = &token[1..];
                }
                ',' | ':' if depth > 0 => self.rest = &token[1..],
                ',' | ':' => return None,
                // A number, `true`, `false` or `null`.
                _ => self.rest = token.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "+-.".contains(c)),
            }
            if self.rest.len() == token.len() {
                return None;
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

/// The character that is meant by what follows a backslash.
fn escaped(characters: &mut std::str::Chars<'_>) -> Option<char> {
    Some(match characters.next()? {
        plain @ ('"' | '\\' | '/') => plain,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            let first = unit(characters)?;
            // A character outside of the first plane is two units.
            let second = if (0xd800..0xdc00).contains(&first) {
                let follows = characters.next() == Some('\\') && characters.next() == Some('u');
                Some(unit(characters).filter(|_| follows)?)
            } else {
                None
            };
            let mut decoded = char::decode_utf16([first].into_iter().chain(second));
            decoded.next()?.ok()?
        }
        _ => return None,
    })
}

/// Four hexadecimal digits.
fn unit(characters: &mut std::str::Chars<'_>) -> Option<u16> {
    (0..4).try_fold(0, |number, _| Some(number << 4 | u16::try_from(characters.next()?.to_digit(16)?).ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let plain = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        plain.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                objects(inner).prop_map(Value::from)
            ]
        })
    }

    fn objects(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
        proptest::collection::vec((any::<String>(), inner), 0..5).prop_map(|members| members.into_iter().collect())
    }

    /// The members that are strings, in the order of their names.
    fn strings(object: &Map<String, Value>) -> Vec<(String, String)> {
        object.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    }

    proptest! {
        #[test]
        fn objects_are_read_as_serde_json_writes_them(object in objects(values())) {
            for json in [serde_json::to_string(&object).unwrap(), serde_json::to_string_pretty(&object).unwrap()] {
                prop_assert_eq!(string_members(&json), Some(strings(&object)));
            }
        }

        #[test]
        fn what_is_read_of_an_object_is_what_serde_json_reads(text in "[ {}\\[\\]:,\"a\\\\u0d8-]{0,24}") {
            let json = format!("{{\"k\":{text}}}");
            if let Ok(object) = serde_json::from_str(&json) {
                prop_assert_eq!(string_members(&json), Some(strings(&object)));
            }
        }
    }

    #[test]
    fn a_text_is_written_as_serde_json_reads_it() {
        let controls = (0..0x20_u8).map(|control| format!("{}a ", char::from(control)));
        for text in controls.chain(["\"\\/é😀\u{7f}\u{2028}".to_owned()]) {
            let mut json = String::new();
            push_quoted(&mut json, &text);
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }

    #[test]
    fn escapes_are_read() {
        let read = |value: &str| string_members(&format!("{{\"k\":\"{value}\"}}")).map(|members| members[0].1.clone());
        assert_eq!(read(r#"\"\\\/\b\f\n\r\t\u00e9"#).unwrap(), "\"\\/\u{8}\u{c}\n\r\té");
        assert_eq!(read(r"\ud83d\ude00\uFFFF").unwrap(), "😀\u{ffff}");
        for wrong in [r"\x", r"\u12", r"\u12g4", r"\ud83d", r"\ude00", r"\ud83d\n", r"\ud83d\u0041", "\n", r"\"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_no_object_is_told() {
        let broken =
            ["", "{", "[]", "7", "{}}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "{\"a\":]}", "{\"a\":[1}", "{a:1}"];
        let divided = [r#"{"k":,}"#, r#"{"k"::1}"#, r#"{"k":,"l":"m"}"#, r#"{"k"::"m"}"#];
        for wrong in broken.into_iter().chain(divided) {
            assert!(string_members(wrong).is_none(), "{wrong}");
        }
        assert_eq!(string_members(" { } "), Some(Vec::new()));
    }

    #[test]
    fn nesting_does_not_overflow_the_stack() {
        let deep = format!("{{\"a\":{}{},\"b\":\"c\"}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(string_members(&deep), Some(vec![("b".to_owned(), "c".to_owned())]));
    }
}
