//! Rules of the repository, as tests that fail.

mod bench_checker;
mod circles;
mod documents;
mod harness;
mod release;
mod repository;
mod source;
mod testkit_only;
mod tidy;
mod words;
