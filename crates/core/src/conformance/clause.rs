//! The clauses of the contract, to be shown beside what broke them.

const CONTRACT: &str = include_str!("contract.md");

/// `C20` of `c20_release_says_that_it_released`.
pub(super) fn number(case: &str) -> String {
    let digits = case.trim_start_matches('c').split('_').next().unwrap_or_default();
    format!("C{}", digits.trim_start_matches('0'))
}

/// What the contract says under this number.
pub(super) fn text(number: &str) -> Option<&'static str> {
    let rows = CONTRACT.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.filter_map(|row| row.split_once(" | ")).find(|(first, _)| *first == number).map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::cases::all;

    #[test]
    fn every_case_is_named_after_a_clause_of_the_contract() {
        for case in all() {
            assert!(text(&number(case.name)).is_some_and(|text| text.starts_with("**")), "{}", case.name);
        }
    }

    #[test]
    fn every_clause_has_a_case() {
        let clauses =
            CONTRACT.lines().filter_map(|line| line.strip_prefix("| C")?.split_once(" | ")).map(|(number, _)| number);
        for clause in clauses {
            let clause = format!("C{clause}");
            assert!(all().iter().any(|case| number(case.name) == clause), "no case for {clause}");
        }
    }
}
