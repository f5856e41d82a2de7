//! Runs each of the programs, and checks what it does.

mod fences;
mod jobs;
mod listing;
mod running;
mod stores;
mod web;

use fences::{a_late_write_to_a_hash_is_refused, a_late_write_to_a_row_is_refused};
use jobs::{of_many_hosts_one_does_the_job, the_next_replica_leads_after_each};
use listing::every_program_is_listed_and_says_how_it_is_run;
use stores::{
    a_cache_is_filled_once, every_store_is_used_by_the_same_code, threads_and_processes_count_one_after_the_other,
};
use web::{
    a_request_in_flight_is_answered_before_the_service_ends, visits_of_one_user_are_counted_one_after_the_other,
};

leasehold_testkit::main! {
    every_program_is_listed_and_says_how_it_is_run,
    @multi_thread every_store_is_used_by_the_same_code,
    a_cache_is_filled_once,
    threads_and_processes_count_one_after_the_other,
    @multi_thread a_late_write_to_a_row_is_refused,
    @multi_thread a_late_write_to_a_hash_is_refused,
    @multi_thread of_many_hosts_one_does_the_job,
    @multi_thread the_next_replica_leads_after_each,
    @multi_thread visits_of_one_user_are_counted_one_after_the_other,
    @multi_thread a_request_in_flight_is_answered_before_the_service_ends,
}
