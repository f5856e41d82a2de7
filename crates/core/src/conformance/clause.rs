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
    use crate::conformance::cases::CASES;

    #[test]
    fn every_case_is_named_after_a_clause_of_the_contract() {
        for case in CASES {
            assert!(text(&number(case.name)).is_some_and(|text| text.starts_with("**")), "{}", case.name);
        }
    }

    /// What no backend can break whose steps are right: `tests/it` asks the engine for it, on a store in memory.
    const OF_THE_ENGINE: [&str; 5] = ["C11", "C17", "C18", "C26", "C31"];

    #[test]
    fn every_clause_has_a_case_or_is_the_engines_alone() {
        for line in CONTRACT.lines().filter(|line| line.starts_with("| C")) {
            let clause = line["| ".len()..].split(' ').next().unwrap_or_default();
            let has_a_case = CASES.iter().any(|case| number(case.name) == clause);
            assert!(has_a_case != OF_THE_ENGINE.contains(&clause), "{clause}");
        }
    }
}
