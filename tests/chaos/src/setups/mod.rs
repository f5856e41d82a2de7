//! What is tested: backends on servers that are arranged in some way.

mod all;
mod setup;

pub(crate) use self::all::{ALL, named};
pub(crate) use self::setup::{Setup, Stays};
