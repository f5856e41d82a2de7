//! A Rust file as far as imports need it: its modules, what each defines, and the paths that it names.

/// A token: an identifier, a lifetime-free punctuation mark, or `::`.
pub(crate) type Token<'t> = &'t str;

/// The identifiers and punctuation of a file, without comments, texts, characters and lifetimes.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        at += match bytes[at] {
            b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            b'"' => text_length(rest, 0),
            b'r' if raw_text(rest).is_some() => raw_text(rest).unwrap_or(1),
            b'b' if rest.starts_with("b\"") => text_length(rest, 1),
            b'\'' => quote_length(rest),
            b':' if rest.starts_with("::") => {
                tokens.push("::");
                2
            }
            first if first.is_ascii_alphanumeric() || first == b'_' => {
                let end = rest.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(rest.len());
                tokens.push(&rest[..end]);
                end
            }
            first if first.is_ascii_graphic() => {
                tokens.push(&rest[..1]);
                1
            }
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    tokens
}

/// The length of `"…"`, where its first quote is at `from`.
fn text_length(rest: &str, from: usize) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(from + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of `r"…"` or `r#"…"#`.
fn raw_text(rest: &str) -> Option<usize> {
    let marks = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let body = rest[1 + marks..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(marks));
    Some(2 + marks + body.find(&end)? + end.len())
}

/// The length of a character, or of a lifetime.
fn quote_length(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), Some((at, second))) => {
            let from = at + second.len_utf8();
            rest[from..].find('\'').map_or(rest.len(), |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => rest[1..].find(|next: char| !next.is_alphanumeric() && next != '_').map_or(rest.len(), |end| end + 1),
    }
}

/// A `use`: the path, and the name under which it is known here (`*` for all that is there).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) path: Vec<String>,
    pub(crate) name: String,
}

/// One module of a file: the file itself, or a `mod x { … }` in it.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) name: String,
    pub(crate) uses: Vec<Use>,
    pub(crate) defines: Vec<String>,
    /// Paths of at least two names that its code contains.
    pub(crate) paths: Vec<Vec<String>>,
    /// `mod x;`
    pub(crate) files: Vec<String>,
    pub(crate) inline: Vec<Parsed>,
}

/// Reads the items of a file. Inline modules for tests are left out.
pub(crate) fn parse(tokens: &[Token<'_>]) -> Parsed {
    let mut module = Parsed::default();
    let mut at = 0;
    while at < tokens.len() {
        at += match tokens[at] {
            "use" => {
                let end = tokens[at..].iter().position(|token| *token == ";").unwrap_or(tokens.len() - at);
                let tree = &tokens[at + 1..at + end];
                module.uses.extend(flattened(&[], tree));
                end + 1
            }
            "mod" if tokens.get(at + 2) == Some(&";") => {
                module.files.push(tokens[at + 1].to_owned());
                3
            }
            "mod" if tokens.get(at + 2) == Some(&"{") => {
                let length = block(&tokens[at + 2..]);
                let is_for_tests = attributes_before(&tokens[..at]).contains(&"test");
                if !is_for_tests {
                    let inside = parse(&tokens[at + 3..at + 1 + length]);
                    module.inline.push(Parsed { name: tokens[at + 1].to_owned(), ..inside });
                }
                2 + length
            }
            "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" | "macro_rules" => {
                let name = tokens[at + 1..].iter().find(|token| !["!", "mut"].contains(token));
                module.defines.extend(name.map(|name| (*name).to_owned()));
                1
            }
            name if is_name(name) && tokens.get(at + 1) == Some(&"::") => {
                let mut path = vec![name.to_owned()];
                let mut length = 1;
                while tokens.get(at + length) == Some(&"::")
                    && tokens.get(at + length + 1).is_some_and(|next| is_name(next))
                {
                    path.push(tokens[at + length + 1].to_owned());
                    length += 2;
                }
                module.paths.push(path);
                length
            }
            _ => 1,
        };
    }
    module
}

/// The attributes that stand before an item.
fn attributes_before<'a, 't>(tokens: &'a [Token<'t>]) -> &'a [Token<'t>] {
    let item = |token: &&Token<'_>| [";", "}", "{"].contains(*token);
    let from = tokens.iter().rposition(|token| item(&token)).map_or(0, |last| last + 1);
    &tokens[from..]
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The length of a `{ … }`.
fn block(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" if depth == 1 => return at + 1,
            "}" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// `a::{b, c::d as e}` as one path each.
fn flattened(before: &[String], tree: &[Token<'_>]) -> Vec<Use> {
    let open = tree.iter().position(|token| *token == "{");
    let head = &tree[..open.unwrap_or(tree.len())];
    let renamed = head.iter().position(|token| *token == "as");
    let names = head[..renamed.unwrap_or(head.len())].iter().filter(|token| is_name(token) || **token == "*");
    let mut path = before.to_vec();
    path.extend(names.map(|name| (*name).to_owned()));
    let Some(open) = open else {
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let last = renamed.map(|at| head[at + 1].to_owned()).or_else(|| path.last().cloned());
        return last.map(|name| Use { path, name }).into_iter().collect();
    };
    let inside = &tree[open + 1..open + block(&tree[open..]) - 1];
    let mut all = Vec::new();
    let (mut depth, mut from) = (0, 0);
    for (at, token) in inside.iter().chain([&","]).enumerate() {
        match *token {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 0 => {
                if at > from {
                    all.extend(flattened(&path, &inside[from..at]));
                }
                from = at + 1;
            }
            _ => {}
        }
    }
    all
}

#[test]
fn a_file_is_read_as_far_as_imports_need_it() {
    let text = r#"
        //! use crate::comment::Gone;
        use crate::{a::{B, c as d}, e::{self}};
        pub(super) mod child;
        struct Here<'a> { text: &'a str }
        fn run() -> char { let _ = "use crate::text::Gone;"; e::go(super::up::X); '"' }
        mod inner { use super::Here; }
        #[cfg(test)]
        mod tests { use super::*; }
    "#;
    let file = parse(&tokens(text));
    let used: Vec<(String, &str)> = file.uses.iter().map(|used| (used.path.join("::"), used.name.as_str())).collect();
    let expected = [("crate::a::B", "B"), ("crate::a::c", "d"), ("crate::e", "e")];
    assert_eq!(used, expected.map(|(path, name)| (path.to_owned(), name)));
    assert_eq!(file.files, ["child"]);
    assert_eq!(file.defines, ["Here", "run"]);
    assert_eq!(file.paths, [vec!["e", "go"], vec!["super", "up", "X"]]);
    assert_eq!(file.inline.len(), 1);
    assert_eq!(file.inline[0].uses, [Use { path: vec!["super".into(), "Here".into()], name: "Here".into() }]);
}
