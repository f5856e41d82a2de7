//! What is shared by the client processes, the nemesis and the runner of `cargo xtask chaos`.

pub mod checker;
pub mod history;
pub mod register;
