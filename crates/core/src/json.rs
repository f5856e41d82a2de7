//! Keys, owner ids and errors for `serde`. Keys and owner ids are checked when they are read: a client may have written anything.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Error, ErrorKind, LockKey, OwnerId};

impl Serialize for LockKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for LockKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(from)?).map_err(D::Error::custom)
    }
}

impl Serialize for OwnerId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for OwnerId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // The text is a secret: it is not quoted.
        Self::parse_hex(&String::deserialize(from)?).ok_or_else(|| D::Error::custom("no owner id"))
    }
}

/// What another process is told of an error.
#[derive(Deserialize, Serialize)]
#[serde(rename = "Error")]
struct Told {
    kind: ErrorKind,
    detail: Option<String>,
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let told = self.retell();
        Told { kind: told.kind(), detail: told.advice().map(str::to_owned) }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Told { kind, detail } = Told::deserialize(from)?;
        let error = Self::new(kind, "ask");
        Ok(if let Some(detail) = detail { error.detail(detail) } else { error })
    }
}
