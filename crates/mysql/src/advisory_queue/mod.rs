//! The queue of waiters in the server, built on `GET_LOCK`.

pub(crate) mod queue;

mod lock;
mod subscription;
