//! Builds all mutants into one program: each changed function becomes a `match`, with an arm for each of its mutants.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::generated::{At, Mutant, names};
use super::subject::Subject;
use crate::test_program::TestProgram;
use crate::workspace::{read, root, write};

const KNOWN: &str = "unviable.json";

/// The programs of the tests, and the mutants that are in them, each with the number of its function. The others do not compile.
pub(super) fn build(
    subject: &Subject,
    mutants: &[Mutant],
) -> Result<(Vec<TestProgram>, BTreeMap<usize, usize>), String> {
    let text = |file: String| read(&root().join(&subject.sources).join(&file)).map(|text| (file, text));
    let originals: Vec<_> = subject.files().into_iter().map(text).collect::<Result<_, _>>()?;
    // What an earlier build of the same text found not to compile: without it, every run would build everything again.
    let (known, names) = (subject.copy.target.join(KNOWN), names(mutants));
    let (of_texts, mut unviable): (Vec<(String, String)>, BTreeSet<String>) =
        serde_json::from_str(&read(&known).unwrap_or_default()).unwrap_or_default();
    if of_texts != originals {
        unviable.clear();
    }
    loop {
        let mut functions = Vec::new();
        for (file, text) in &originals {
            let of_it = mutants
                .iter()
                .enumerate()
                .filter(|(number, mutant)| mutant.file == *file && !unviable.contains(&names[*number]));
            let (armed, changed) = armed(text, of_it.collect())?;
            functions.extend(changed.into_iter().map(|function| (file, function)));
            subject.write(file, &armed)?;
        }
        let (mut said, mut succeeded) = subject.check()?;
        if succeeded {
            (said, succeeded) = subject.build()?;
        }
        if succeeded {
            let kept = serde_json::to_string(&(&originals, &unviable)).map_err(|failure| failure.to_string())?;
            write(&known, &kept)?;
            return Ok((
                TestProgram::read_all(&said),
                functions.iter().flat_map(|(_, function)| function.members()).collect(),
            ));
        }
        let places: BTreeSet<_> = said.lines().filter_map(|line| error_at(line, &subject.sources)).collect();
        let wrong: Vec<_> = functions.iter().flat_map(|(file, function)| function.wrong(file, &places)).collect();
        if wrong.is_empty() {
            return Err(format!("{} does not build:\n{said}", subject.package));
        }
        unviable.extend(wrong.into_iter().map(|number| names[number].clone()));
    }
}

/// Reads the place in a message such as `… src/engine/state/grant.rs:17:5: error[E0277]: …`.
fn error_at(line: &str, sources: &str) -> Option<(String, usize)> {
    let (place, _) = line.split_once(": error")?;
    let (_, place) = place.rsplit_once(&format!("{sources}/"))?;
    let mut parts = place.split(':');
    Some((parts.next()?.to_owned(), parts.next()?.parse().ok()?))
}

/// A changed function: the lines on which it is, and those on which the arm of each of its mutants is.
#[derive(Debug, PartialEq)]
struct Function {
    lines: Range<usize>,
    arms: Vec<(usize, Range<usize>)>,
}

impl Function {
    /// Its mutants, each with the number of the function: that of its first mutant.
    fn members(&self) -> impl Iterator<Item = (usize, usize)> {
        self.arms.iter().map(|(mutant, _)| (*mutant, self.arms[0].0))
    }

    /// The mutants whose arms are wrong; or all, where the function bears no arms at all, such as one that is `const`.
    fn wrong(&self, file: &str, places: &BTreeSet<(String, usize)>) -> Vec<usize> {
        let is_wrong = |lines: &Range<usize>| places.iter().any(|(known, line)| known == file && lines.contains(line));
        let some: Vec<_> = self.arms.iter().filter(|(_, lines)| is_wrong(lines)).map(|(number, _)| *number).collect();
        if some.is_empty() && is_wrong(&self.lines) {
            return self.arms.iter().map(|(number, _)| *number).collect();
        }
        some
    }
}

/// A file with arms for its mutants, and where its changed functions are.
fn armed(text: &str, mutants: Vec<(usize, &Mutant)>) -> Result<(String, Vec<Function>), String> {
    let mut functions: BTreeMap<(At, At), Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants {
        functions.entry(mutant.function).or_default().push((number, mutant));
    }
    let (mut new, mut of_it) = (String::new(), Vec::new());
    let mut done = 0;
    for ((start, end), mutants) in functions {
        let function = offset(text, start)?..offset(text, end)?;
        let body = body(text, &function)?;
        new += text.get(done..body.start).ok_or("a changed function is in another")?;
        let mut changed = Function { lines: line_of(&new)..0, arms: Vec::new() };
        new.extend(["match crate::mutant(", &mutants[0].0.to_string(), ") {"]);
        // Closures make each arm's type another.
        let one_type = text[function.start..body.start].contains("-> impl Iterator");
        for (number, mutant) in mutants {
            let (from, to) = (offset(text, mutant.span.0)?, offset(text, mutant.span.1)?);
            let body = format!("{}{}{}", &text[body.start..from], mutant.replacement, &text[to..body.end]);
            let first = line_of(&new) + 1;
            new.extend(["\n", &number.to_string(), " => ", &arm(&body, one_type)]);
            changed.arms.push((number, first..line_of(&new) + 1));
        }
        new.extend(["\n_ => ", &arm(&text[body.clone()], one_type), "\n}"]);
        changed.lines.end = line_of(&new) + 1;
        of_it.push(changed);
        done = body.end;
    }
    new += &text[done..];
    Ok((new, of_it))
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
        let expected = "fn more((a, b): (u8, u8)) -> bool {match crate::mutant(3) {\n3 => {\n    a >= b\n}\n5 => {\n    true\n}\n\
                        _ => {\n    a > b\n}\n}}\nfn other() {}\n";
        let function = Function { lines: 1..12, arms: vec![(3, 2..5), (5, 5..8)] };
        assert_eq!(armed, (expected.to_owned(), vec![function]));
    }

    #[test]
    fn what_is_wrong_beside_the_arms_of_a_function_is_wrong_of_all() {
        let function = Function { lines: 1..12, arms: vec![(3, 2..5), (5, 5..8)] };
        let wrong =
            |lines: &[usize]| function.wrong("a.rs", &lines.iter().map(|line| ("a.rs".to_owned(), *line)).collect());
        assert_eq!((wrong(&[6]), wrong(&[1, 3]), wrong(&[9]), wrong(&[12])), (vec![5], vec![3], vec![3, 5], vec![]));
        assert!(function.wrong("b.rs", &BTreeSet::from([("a.rs".to_owned(), 6)])).is_empty());
    }
}
