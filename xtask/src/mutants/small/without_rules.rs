//! The rules of a crate that are left out, as mutants.

use std::collections::BTreeSet;

use super::generated::{At, Mutant};
use super::rules::Rule;
use super::subject::Subject;

/// The rules of these files as mutants, beside those that the tool lists: it knows where functions begin and end.
pub(super) fn of(subject: &Subject, listed: &[Mutant]) -> Result<Vec<Mutant>, String> {
    let files: BTreeSet<&str> = listed.iter().map(|mutant| mutant.file.as_str()).collect();
    let chosen = subject.rules.iter().filter(|rule| files.contains(rule.file));
    chosen.map(|rule| of_rule(rule, &subject.original(rule.file)?, listed)).collect()
}

fn of_rule(rule: &Rule, text: &str, listed: &[Mutant]) -> Result<Mutant, String> {
    let why = |what: &str| format!("{}: {:?} {what}", rule.file, rule.right);
    let mut found = text.match_indices(rule.right).map(|(at, _)| at);
    let (Some(at), None) = (found.next(), found.next()) else { return Err(why("does not stand there once")) };
    let span = (place(text, at), place(text, at + rule.right.len()));
    let around =
        |mutant: &&Mutant| mutant.file == rule.file && mutant.function.0 <= span.0 && span.1 <= mutant.function.1;
    let function = listed.iter().find(around).ok_or_else(|| why("is in no function with other mutants"))?.function;
    Ok(Mutant {
        file: rule.file.to_owned(),
        what: rule.wrong.to_owned(),
        replacement: rule.instead.to_owned(),
        span,
        function,
        line: rule.instead.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

/// Line and column of an offset, both from 1.
fn place(text: &str, at: usize) -> At {
    let before = &text[..at];
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_mutant_of_the_function_around_it() {
        let rule = Rule { file: "a.rs", wrong: "w", right: "b > c", instead: "true" };
        let text = "fn a() -> bool {\n    ä(b > c)\n}\n";
        let listed = Mutant {
            file: "a.rs".to_owned(),
            what: String::new(),
            replacement: String::new(),
            span: ((2, 7), (2, 8)),
            function: ((1, 1), (3, 2)),
            line: String::new(),
        };
        let of_it = of_rule(&rule, text, std::slice::from_ref(&listed)).unwrap();
        assert_eq!((of_it.span, of_it.function), (((2, 7), (2, 12)), listed.function));
        assert!(of_rule(&rule, text, &[]).is_err() && of_rule(&rule, "fn a() {}", &[listed]).is_err());
    }
}
