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
    pub fn arguments<A: ToString>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::default().behind(arguments)
    }

    /// The same with these arguments before its own, which count where an argument is there twice.
    #[must_use]
    pub fn behind<A: ToString>(&self, arguments: impl IntoIterator<Item = A>) -> Self {
        let arguments = arguments.into_iter().map(|argument| argument.to_string());
        Self { arguments: arguments.chain(self.arguments.iter().cloned()).collect(), ..self.clone() }
    }
}
