//! `docs/observability.md` against what is emitted, and the dashboard and the alert rules against what an exporter shows.

mod document;
mod emitted;
mod everywhere;
mod prometheus;
mod promql;
mod recorder;
mod source;

use emitted::everything_that_is_documented_is_emitted_and_nothing_else;
use everywhere::{mariadb_tells_the_same_as_memory, redis_tells_the_same_as_memory};
use prometheus::the_dashboard_and_the_alerts_ask_for_what_is_exported;
use promql::names_are_found_in_queries;
use source::every_event_of_the_code_is_documented;

leasehold_testkit::main! {
    every_event_of_the_code_is_documented,
    everything_that_is_documented_is_emitted_and_nothing_else,
    redis_tells_the_same_as_memory,
    mariadb_tells_the_same_as_memory,
    names_are_found_in_queries,
    @multi_thread the_dashboard_and_the_alerts_ask_for_what_is_exported,
}
