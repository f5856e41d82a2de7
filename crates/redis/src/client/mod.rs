//! The connection to Redis: where it leads, how the driver is configured, who keeps it going, and what its errors mean.

pub(crate) mod clear_text;
pub(crate) mod cluster;
pub(crate) mod command;
pub(crate) mod confirmation;
pub(crate) mod connect_errors;
pub(crate) mod connection;
pub(crate) mod driver;
pub(crate) mod endpoint;
pub(crate) mod error;
pub(crate) mod info;
pub(crate) mod invalid_url;
pub(crate) mod link;
pub(crate) mod scan;
pub(crate) mod secrets;
pub(crate) mod sentinels;
pub(crate) mod settings;
pub(crate) mod slots;
pub(crate) mod supervisor;
pub(crate) mod tls;
pub(crate) mod value;
