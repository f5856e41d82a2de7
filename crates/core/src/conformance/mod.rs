//! The shared suite.
