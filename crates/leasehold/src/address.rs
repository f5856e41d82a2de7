use std::fmt;

use leasehold_core::{Error, ErrorKind, Result};
use url::Url;

/// The URL of a store, which may contain a password. Only [`public`](Self::public), which `Debug` shows too, may be
/// printed or logged.
///
/// ```
/// use leasehold::Address;
///
/// let address = Address::new("redis://ada:secret@db1:6379");
/// assert_eq!(address.public(), "redis://ada@db1:6379");
/// assert_eq!(address.scheme(), Some("redis"));
/// ```
#[derive(Clone)]
pub struct Address {
    secret: String,
    public: String,
}

impl Address {
    /// A URL, or what is meant to be one.
    pub fn new(url: &str) -> Self {
        Self { secret: url.to_owned(), public: redact(url) }
    }

    /// Adds a password to the URL, or to each of the URLs in `scheme:url,url,url`. A password that a URL has already is kept,
    /// unless `replace` is set.
    ///
    /// # Errors
    /// [`InvalidOptions`](ErrorKind::InvalidOptions) for a URL that cannot have a password.
    pub fn with_password(self, password: &str, replace: bool) -> Result<Self> {
        let refuse =
            || Error::new(ErrorKind::InvalidOptions, "connect").detail("the password does not fit into the URL");
        let secret = each_url(&self.secret, |url| {
            let mut url = Url::parse(url).map_err(|_| refuse())?;
            if replace || url.password().is_none() {
                // `set_password` encodes everything that ends a password, but not the sign that starts a code.
                url.set_password(Some(&password.replace('%', "%25"))).map_err(|()| refuse())?;
            }
            Ok::<_, Error>(url.into())
        })?;
        Ok(Self { secret, ..self })
    }

    /// The text before the first colon, if it looks like a URL scheme.
    pub fn scheme(&self) -> Option<&str> {
        scheme(&self.secret)
    }

    /// The whole URL with the password, for the backend only.
    pub fn expose(&self) -> &str {
        &self.secret
    }

    /// The URL without passwords; `…` in place of one that cannot be parsed for certain.
    pub fn public(&self) -> &str {
        &self.public
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.public).finish()
    }
}

/// The text before the first colon, if it looks like a URL scheme.
pub(crate) fn scheme(url: &str) -> Option<&str> {
    url.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| is_scheme(scheme))
}

/// Whether a URL could begin with this scheme.
pub(crate) fn is_scheme(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(legal)
}

/// Removes passwords from a URL. A URL that cannot be parsed for certain is replaced as a whole.
fn redact(url: &str) -> String {
    if !url.contains("//") {
        return if url.contains('@') && !url.starts_with("file:") { "…".to_owned() } else { url.to_owned() };
    }
    each_url(url, |url| {
        let mut url = Url::parse(url).map_err(drop)?;
        if [Some(url.path()), url.query(), url.fragment()].into_iter().flatten().any(|part| part.contains('@')) {
            // A password with an unencoded `/`, `?` or `#` in it ends up in these parts.
            return Err(());
        }
        if url.password().is_some() {
            url.set_password(None)?;
        }
        let is_secret = |name: &str| name.to_ascii_lowercase().contains("pass");
        if url.query_pairs().any(|(name, _)| is_secret(&name)) {
            let kept: Vec<_> = url.query_pairs().into_owned().filter(|(name, _)| !is_secret(name)).collect();
            url.set_query(None);
            if !kept.is_empty() {
                url.query_pairs_mut().extend_pairs(kept);
            }
        }
        Ok(url.into())
    })
    .unwrap_or_else(|()| "…".to_owned())
}

/// Applies `change` to a URL, or to each of the URLs in `scheme:url,url,url`.
fn each_url<E>(text: &str, change: impl Fn(&str) -> Result<String, E>) -> Result<String, E> {
    let Some((scheme, rest)) = text.split_once(':').filter(|(_, rest)| rest.contains("://")) else {
        return change(text);
    };
    let urls: Result<Vec<_>, E> = rest.split(',').map(change).collect();
    Ok(format!("{scheme}:{}", urls?.join(",")))
}
