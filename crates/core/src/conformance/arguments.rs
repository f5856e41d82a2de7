//! What a run is asked for: the arguments of libtest-mimic, and any number of filters, where libtest-mimic takes one.

use libtest_mimic::{Arguments, Trial};

/// The options whose value is an argument of its own.
const WITH_VALUE: [&str; 6] = ["--test-threads", "--logfile", "--skip", "--color", "--format", "-Z"];

/// The arguments of a run.
#[derive(Debug)]
pub struct Asked {
    /// Everything but the filters.
    pub arguments: Arguments,
    /// A case is run if one of them is in its name. None: every case is.
    filters: Vec<String>,
}

impl Asked {
    /// The arguments of this process.
    pub fn from_args() -> Self {
        Self::of(std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()))
    }

    fn of(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut options: Vec<String> = arguments.next().into_iter().collect();
        let mut filters = Vec::new();
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                filters.extend(arguments);
                break;
            }
            if !argument.starts_with('-') {
                filters.push(argument);
                continue;
            }
            let has_value = WITH_VALUE.contains(&argument.as_str());
            options.push(argument);
            if has_value {
                options.extend(arguments.next());
            }
        }
        Self { arguments: Arguments::from_iter(options), filters }
    }

    /// Whether a case is run, or listed.
    pub fn includes(&self, case: &Trial) -> bool {
        let passes = |filter| {
            let arguments = Arguments { filter, ..self.arguments.clone() };
            !arguments.is_filtered_out(case)
        };
        if self.filters.is_empty() { passes(None) } else { self.filters.iter().cloned().map(Some).any(passes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(arguments: &str) -> Vec<&'static str> {
        let asked = Asked::of(["suite"].into_iter().chain(arguments.split_whitespace()).map(str::to_owned));
        let all = ["store::c01_one", "store::c01_two", "store::c02_three"];
        let included = |name: &&str| asked.includes(&Trial::test(*name, || Ok(())));
        all.into_iter().filter(included).collect()
    }

    #[test]
    fn a_case_is_run_if_one_of_the_filters_is_in_its_name() {
        assert_eq!(runs("").len(), 3);
        assert_eq!(runs("c01_two"), ["store::c01_two"]);
        assert_eq!(runs("c02_ c01_one c03_"), ["store::c01_one", "store::c02_three"]);
        assert_eq!(runs("--exact c01_one store::c01_two"), ["store::c01_two"]);
        assert_eq!(runs("-- c02_ --c01_two"), ["store::c02_three"]);
        assert!(runs("c03_").is_empty());
    }

    #[test]
    fn the_value_of_an_option_is_no_filter() {
        assert_eq!(runs("--test-threads 4 c02_ --skip one c01_"), ["store::c01_two", "store::c02_three"]);
        assert_eq!(runs("--color never --format=terse c02_"), ["store::c02_three"]);
        let asked = Asked::of(["suite", "--test-threads", "4"].map(str::to_owned).into_iter());
        assert_eq!(asked.arguments.test_threads, Some(4));
    }
}
