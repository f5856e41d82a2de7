use mysql_async::Value;

/// The parameters of one statement.
#[derive(Clone, Debug, Default)]
pub enum Params {
    /// The statement has none.
    #[default]
    Empty,
    /// The statement names them: `:name`.
    Named(Vec<(&'static str, Value)>),
    /// The statement has a `?` for each, in this order.
    Positional(Vec<Value>),
}

/// Parameters by their names, without the colons.
pub fn named<const N: usize>(params: [(&'static str, Value); N]) -> Params {
    Params::Named(params.into())
}

/// A text, or NULL, as a parameter.
pub fn text(text: Option<&str>) -> Value {
    text.map_or(Value::NULL, |text| Value::Bytes(text.as_bytes().into()))
}

impl From<Params> for mysql_async::Params {
    fn from(params: Params) -> Self {
        match params {
            Params::Empty => Self::Empty,
            Params::Named(params) => {
                Self::Named(params.into_iter().map(|(name, value)| (name.as_bytes().to_vec(), value)).collect())
            }
            Params::Positional(params) => Self::Positional(params),
        }
    }
}
