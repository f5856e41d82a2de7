/// What a server is started with, beside what the launcher sets itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Further arguments.
    pub arguments: Vec<String>,
    /// Environment variables, each as `NAME=value`. They reach the server alone.
    pub variables: Vec<String>,
}

impl Settings {
    /// These arguments, and no variables.
    pub fn arguments(arguments: &[&str]) -> Self {
        Self { arguments: arguments.iter().map(ToString::to_string).collect(), variables: Vec::new() }
    }
}
