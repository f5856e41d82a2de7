use fred::types::Value;

/// Empty if it is none, or not UTF-8: we write nothing else.
pub(crate) fn text(value: &Value) -> &str {
    utf8(value).unwrap_or_default()
}

pub(crate) fn utf8(value: &Value) -> Option<&str> {
    value.as_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
}
