//! One statement: its text, its parameters, how it is to be sent, and the answer.

pub(crate) mod batch;
pub(crate) mod params;
pub(crate) mod reply;
pub(crate) mod step;
pub(crate) mod text;
