use mysql_async::{Params, Value};

/// Parameters by their names, without the colons.
pub fn named(params: impl IntoIterator<Item = (&'static str, Value)>) -> Params {
    Params::Named(params.into_iter().map(|(name, value)| (name.as_bytes().to_vec(), value)).collect())
}

/// A text, or NULL, as a parameter.
pub(crate) fn text(text: Option<&str>) -> Value {
    text.map_or(Value::NULL, |text| Value::Bytes(text.as_bytes().into()))
}
