//! What is shared by the client processes, the nemesis and the runner of `cargo xtask chaos`.

#![allow(missing_docs, reason = "not published: the program and its tests alone use it")]

pub mod checker;
pub mod history;
pub mod register;
