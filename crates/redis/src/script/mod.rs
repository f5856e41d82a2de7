//! Lua scripts: what they are made of, how they are run, alone or many in one batch, and what they answer.

pub(crate) mod arguments;
pub(crate) mod batch;
pub(crate) mod function;
pub(crate) mod group_commit;
pub(crate) mod reply;
pub(crate) mod run;
pub(crate) mod shared_lua;
pub(crate) mod source;
