//! Notifications of releases and of grants, over Redis pub/sub.

pub(crate) mod connection;
pub(crate) mod notifications;
pub(crate) mod subscribers;
pub(crate) mod subscription;
pub(crate) mod task;
