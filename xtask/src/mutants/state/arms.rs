//! Builds all mutants into one program: each changed function becomes a `match`, with an arm for each of its mutants.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use super::alone::{Alone, STATE};
use super::generated::{At, Mutant};

/// The program of the tests, and the numbers of the mutants that are in it. The others do not compile.
pub(super) fn build(alone: &Alone, mutants: &[Mutant]) -> Result<(PathBuf, Vec<usize>), String> {
    let files: BTreeSet<&String> = mutants.iter().map(|mutant| &mutant.file).collect();
    let originals: BTreeMap<_, _> = files
        .into_iter()
        .map(|file| Ok((file, alone.read(&format!("{STATE}/{file}"))?)))
        .collect::<Result<_, String>>()?;
    let mut viable: BTreeSet<usize> = (0..mutants.len()).collect();
    loop {
        let mut lines: Vec<(String, Range<usize>, usize)> = Vec::new();
        for (file, text) in &originals {
            let of_it = viable.iter().copied().filter(|number| mutants[*number].file == **file);
            let armed = armed(text, of_it.map(|number| (number, &mutants[number])).collect())?;
            lines.extend(armed.arms.into_iter().map(|(number, lines)| ((*file).clone(), lines, number)));
            alone.write(&format!("{STATE}/{file}"), &armed.text)?;
        }
        let (said, program) = alone.build()?;
        if let Some(program) = program {
            return Ok((program, viable.into_iter().collect()));
        }
        let wrong: BTreeSet<_> = said.lines().filter_map(error_at).collect();
        let in_error = |(file, lines, _): &&(String, Range<usize>, usize)| {
            wrong.iter().any(|(known, line)| known == file && lines.contains(line))
        };
        let unviable: BTreeSet<_> = lines.iter().filter(in_error).map(|(.., number)| *number).collect();
        if unviable.is_empty() {
            return Err(format!("the state machine does not build:\n{said}"));
        }
        viable.retain(|number| !unviable.contains(number));
    }
}

/// Reads the place in a message such as `… src/engine/state/grant.rs:17:5: error[E0277]: …`.
fn error_at(line: &str) -> Option<(String, usize)> {
    let (place, _) = line.split_once(": error")?;
    let (_, place) = place.rsplit_once("state/")?;
    let mut parts = place.split(':');
    Some((parts.next()?.to_owned(), parts.next()?.parse().ok()?))
}

/// A file with arms for its mutants, and the lines on which each arm is.
#[derive(Debug, PartialEq)]
struct Armed {
    text: String,
    arms: Vec<(usize, Range<usize>)>,
}

fn armed(text: &str, mutants: Vec<(usize, &Mutant)>) -> Result<Armed, String> {
    let mut functions: BTreeMap<(At, At), Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants {
        functions.entry(mutant.function).or_default().push((number, mutant));
    }
    let mut new = Armed { text: String::new(), arms: Vec::new() };
    let mut done = 0;
    for ((start, end), mutants) in functions {
        let function = offset(text, start)?..offset(text, end)?;
        let body = body(text, &function)?;
        new.text += text.get(done..body.start).ok_or("a changed function is in another")?;
        new.text += "match crate::mutant() {";
        // Closures make each arm's type another.
        let one_type = text[function.start..body.start].contains("-> impl Iterator");
        for (number, mutant) in mutants {
            let (from, to) = (offset(text, mutant.span.0)?, offset(text, mutant.span.1)?);
            let changed = format!("{}{}{}", &text[body.start..from], mutant.replacement, &text[to..body.end]);
            let first = line_of(&new.text) + 1;
            new.text.extend(["\n", &number.to_string(), " => ", &arm(&changed, one_type)]);
            new.arms.push((number, first..line_of(&new.text) + 1));
        }
        new.text.extend(["\n_ => ", &arm(&text[body.clone()], one_type), "\n}"]);
        done = body.end;
    }
    new.text += &text[done..];
    Ok(new)
}

fn arm(body: &str, one_type: bool) -> String {
    if one_type { format!("{{ ({{{body}}}).collect::<Vec<_>>().into_iter() }}") } else { format!("{{{body}}}") }
}

fn line_of(text: &str) -> usize {
    text.matches('\n').count() + 1
}

/// The offset of a place in the text.
fn offset(text: &str, (line, column): At) -> Result<usize, String> {
    let missing = || format!("there is no line {line} with a column {column}");
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let line = text[start..].lines().next().ok_or_else(missing)?;
    let mut ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    ends.nth(column - 1).map(|at| start + at).ok_or_else(missing)
}

/// The range of text between the braces of a function.
fn body(text: &str, function: &Range<usize>) -> Result<Range<usize>, String> {
    let mut depth = 0;
    let code = &text[function.clone()];
    let begin = code.find("fn ").unwrap_or_default();
    for (at, sign) in code.char_indices().skip_while(|(at, _)| *at < begin) {
        match sign {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return Ok(function.start + at + 1..function.end - 1),
            _ => {}
        }
    }
    Err(format!("this is no function: {code}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(span: (At, At), replacement: &str, function: (At, At)) -> Mutant {
        let (file, replacement) = ("a.rs".to_owned(), replacement.to_owned());
        Mutant { file, what: String::new(), replacement, span, function, line: String::new() }
    }

    #[test]
    fn a_function_has_an_arm_for_each_mutant_and_one_for_none() {
        let text = "fn more((a, b): (u8, u8)) -> bool {\n    a > b\n}\nfn other() {}\n";
        let function = ((1, 1), (3, 2));
        let (at_least, always) =
            (mutant(((2, 7), (2, 8)), ">=", function), mutant(((2, 5), (2, 10)), "true", function));
        let armed = armed(text, vec![(3, &at_least), (5, &always)]).unwrap();
        let expected = "fn more((a, b): (u8, u8)) -> bool {match crate::mutant() {\n3 => {\n    a >= b\n}\n5 => {\n    true\n}\n\
                        _ => {\n    a > b\n}\n}}\nfn other() {}\n";
        assert_eq!(armed, Armed { text: expected.to_owned(), arms: vec![(3, 2..5), (5, 5..8)] });
    }

    #[test]
    fn the_place_of_an_error_is_found() {
        let said = r#"{"rendered":"src/engine/state/grant.rs:17:5: error[E0277]: the trait"#;
        assert_eq!(error_at(said), Some(("grant.rs".to_owned(), 17)));
        assert_eq!(error_at("src/engine/state/grant.rs:17:5: warning: unused"), None);
    }
}
