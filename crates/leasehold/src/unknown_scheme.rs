use std::error::Error as StdError;
use std::fmt;

use leasehold_core::{Error, ErrorKind};

/// No kind of store is known under the scheme of an address. Nothing was sent, and nothing of what follows the scheme is shown.
///
/// As an [`Error`] it is [`Unsupported`](ErrorKind::Unsupported) if a feature is missing, and
/// [`InvalidOptions`](ErrorKind::InvalidOptions) otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownScheme {
    /// The scheme. `None` if the address does not start with one.
    pub scheme: Option<String>,
    /// The feature of this crate that knows the scheme, if it is not built in.
    pub feature: Option<&'static str>,
    /// The schemes that are known.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.scheme, self.feature) {
            (None, _) => f.write_str("the address is not a URL")?,
            (Some(scheme), Some(feature)) => {
                write!(f, "for {scheme}: build with `leasehold = {{ features = [\"{feature}\"] }}`")?;
            }
            (Some(scheme), None) => write!(f, "unknown scheme {scheme:?}")?,
        }
        match self.known.as_slice() {
            [] => f.write_str("; this build knows no scheme"),
            known => write!(f, "; this build knows {}", known.join(", ")),
        }
    }
}

impl StdError for UnknownScheme {}

impl From<UnknownScheme> for Error {
    fn from(unknown: UnknownScheme) -> Self {
        let kind = if unknown.feature.is_some() { ErrorKind::Unsupported } else { ErrorKind::InvalidOptions };
        Self::new(kind, "connect").detail(unknown.to_string())
    }
}
