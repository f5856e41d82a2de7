//! The shared suite on the memory backend.

mod fixture;

use std::process::ExitCode;

use leasehold_core::{HandOver, conformance};

use crate::fixture::Memory;

fn main() -> ExitCode {
    conformance::shared(Memory::with(HandOver::new()))
}
