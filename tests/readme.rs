#![doc = include_str!("../README.md")]
//! The README's examples, compiled.
