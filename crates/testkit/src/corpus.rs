//! Kept inputs, and mutations of them: what a parser is run on in every test run.

use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use fastrand::Rng;

/// How many mutations of each input are tried.
const MUTATIONS: u64 = 200;

/// Runs a test on each input of a corpus, and on mutations of it, which are the same in every run.
///
/// A corpus is a text with an input on each line, in which `\xNN` is a byte and `\\` a backslash. When the test panics, the
/// input is shown as such a line: add it to the corpus, and it is tried for ever.
pub fn corpus(lines: &str, test: impl Fn(&[u8])) {
    let inputs: Vec<Vec<u8>> = lines.lines().filter(|line| !line.starts_with("# ")).map(read).collect();
    assert!(!inputs.is_empty(), "the corpus has no line");
    let run = |input: &[u8]| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(input))) {
            let _ = writeln!(std::io::stderr(), "input: {}", corpus_line(input));
            resume_unwind(panic);
        }
    };
    let odd: Vec<Vec<u8>> = [""].into_iter().chain(ODD.iter().flat_map(|line| line.split(' '))).map(read).collect();
    for (number, input) in inputs.iter().enumerate() {
        run(input);
        for round in 0..MUTATIONS {
            let mut dice = Rng::with_seed((number as u64) << 32 | round);
            run(&mutated(input, &inputs, &odd, &mut dice));
        }
    }
}

/// [`corpus`] for what takes text: bytes that are no UTF-8 are replaced.
pub fn corpus_of_text(lines: &str, test: impl Fn(&str)) {
    corpus(lines, |input| test(&String::from_utf8_lossy(input)));
}

/// [`corpus_of_text`] for URLs: `told` is what is shown of one, which must not be the password `hunter2`.
pub fn corpus_of_urls(lines: &str, told: impl Fn(&str) -> String) {
    corpus_of_text(lines, |url| {
        let told = told(url);
        assert!(!has_password(url) || !told.contains(PASSWORD), "{url}: {told}");
    });
}

/// The password of the URLs in every corpus.
const PASSWORD: &str = "hunter2";

/// Whether a text is a URL with the password where passwords are, and nowhere else: then nothing may show it.
fn has_password(url: &str) -> bool {
    let place = url.split_once("://").map_or("", |(_, place)| place);
    let before = place.split_once(&format!(":{PASSWORD}@")).map(|(user, _)| user);
    before.is_some_and(|user| !user.contains(['/', '?', '#', '@'])) && url.matches(PASSWORD).count() == 1
}

/// What was found by others in parsers, beside nothing: ends of numbers, signs, separators, other alphabets, what is no UTF-8. As in
/// a line of a corpus, with a blank between two of them.
const ODD: [&str; 3] = [
    r"\x00 \xff \xc3 \xe2\x80\xae \x0d\x0a \x20 - + -- 0 -1 00 1e9 0x10 18446744073709551615 18446744073709551616",
    r"9223372036854775808 9007199254740993 99999999999999999999999 % %00 %ff %2 { } {} [ \x22 ' \\ : :: / // .. ? &",
    r"# @ = , ; \xf0\x9f\x98\x80 e\xcc\x81 \xd9\xa1 NaN null * $(x)",
];

fn mutated(input: &[u8], all: &[Vec<u8>], odd: &[Vec<u8>], dice: &mut Rng) -> Vec<u8> {
    let mut text = input.to_vec();
    for _ in 0..=dice.usize(..3) {
        let (from, to) = range(dice, text.len());
        let other = &all[dice.usize(..all.len())];
        match dice.usize(..7) {
            0 => drop(text.splice(from..from, odd[dice.usize(..odd.len())].iter().copied())),
            1 => drop(text.splice(from..to, odd[dice.usize(..odd.len())].iter().copied())),
            2 => drop(text.drain(from..to)),
            3 => {
                let part = text[from..to].to_vec();
                drop(text.splice(to..to, part));
            }
            4 => text.truncate(from),
            5 => {
                let (begin, end) = range(dice, other.len());
                drop(text.splice(from..to, other[begin..end].iter().copied()));
            }
            _ => {
                if let Some(byte) = text.get_mut(from) {
                    *byte ^= 1 << dice.usize(..8);
                }
            }
        }
    }
    text
}

fn range(dice: &mut Rng, length: usize) -> (usize, usize) {
    let (one, other) = (dice.usize(..=length), dice.usize(..=length));
    (one.min(other), one.max(other))
}

fn read(line: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), line);
    while let Some((plain, escaped)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        rest = if let Some(rest) = escaped.strip_prefix('\\') {
            bytes.push(b'\\');
            rest
        } else {
            let byte = escaped.strip_prefix('x').and_then(|hex| u8::from_str_radix(hex.get(..2)?, 16).ok());
            bytes.push(byte.unwrap_or_else(|| panic!("no input of a corpus: {line}")));
            &escaped[3..]
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// An input as a line of a [`corpus`].
pub fn corpus_line(input: &[u8]) -> String {
    input.iter().fold(String::new(), |mut line, byte| {
        match byte {
            b'\\' => line.push_str("\\\\"),
            b' '..=b'~' => line.push(char::from(*byte)),
            _ => drop(write!(line, "\\x{byte:02x}")),
        }
        line
    })
}
