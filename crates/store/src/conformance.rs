//! What every store must do, as tests that any store can be put through.
//!
//! A behaviour is one function with a telling name; [`run`] calls them all, each with a fresh
//! store, and says which one fails. [`model`] does more: it gives the same random units to the
//! store under test and to the memory store and compares everything that can be seen.
//!
//! The suite knows only the traits. What it leaves out: durability, speed, faults.

mod calendars;
pub mod fixture;
mod keys;
mod leases;
mod life;
mod lists;
mod loads;
pub mod model;
mod rng;
pub(crate) mod schedules;
mod units;

use std::sync::Arc;

use crate::{Queries, Store};

pub use fixture::World;
pub use rng::Rng;

/// Makes an empty store.
pub type Make<'a> = dyn Fn() -> (Arc<dyn Store>, Arc<dyn Queries>) + 'a;

/// One behaviour.
pub type Case = (&'static str, fn(&World));

macro_rules! cases {
    ($($module:ident :: $name:ident),* $(,)?) => {
        &[$((concat!(stringify!($module), "::", stringify!($name)), $module::$name)),*]
    };
}

/// Every behaviour.
pub const CASES: &[Case] = cases![
    units::a_refused_write_undoes_its_unit_and_no_other,
    units::units_see_what_earlier_ones_did,
    units::an_empty_commit_is_fine,
    units::fences_must_be_current_for_every_shard,
    units::fences_survive_neither_takeover_nor_release,
    units::a_refused_unit_leaves_no_catalogue_entry,
    life::every_legal_move_is_made_and_every_illegal_one_refused,
    life::a_stale_version_or_missing_row_is_a_conflict,
    life::an_attempt_that_was_started_and_ended_is_recorded,
    life::an_elided_start_ends_in_one_write,
    life::a_retry_keeps_its_attempts,
    life::lost_and_released_attempts_are_counted_apart,
    life::a_skipped_run_is_one_record,
    life::a_cancel_request_ends_with_the_attempt,
    life::an_edit_changes_all_but_where_the_task_lives,
    life::an_edit_moves_the_task_to_its_new_minute,
    life::progress_extends_the_claim_and_keeps_what_was_said,
    life::a_discarded_task_never_was,
    life::a_redrive_makes_history_live_again,
    life::a_redrive_of_a_live_or_unknown_task_is_a_conflict,
    life::a_redrive_is_refused_while_its_key_is_taken,
    keys::an_insert_is_found_by_id_key_and_sequence,
    keys::sequences_grow,
    keys::an_unknown_or_foreign_queue_is_a_conflict,
    keys::the_same_again_is_the_same_live_or_in_history,
    keys::another_body_under_an_id_is_refused_live_or_in_history,
    keys::an_id_lives_in_its_namespace,
    keys::a_taken_key_refuses_or_keeps,
    keys::a_key_is_free_again_after_the_end,
    keys::a_key_counts_within_its_queue,
    keys::an_occurrence_is_created_once_live_or_in_history,
    keys::every_field_of_a_task_comes_back,
    loads::a_span_is_in_order_and_complete_to_its_edge,
    loads::a_cut_span_ends_between_equals,
    loads::a_span_leaves_out_what_does_not_wait,
    loads::a_span_of_an_empty_range_is_empty,
    loads::shards_are_loaded_together_each_from_its_edge,
    loads::spilled_rows_come_in_rank_order,
    loads::a_spill_passes_over_what_is_not_scheduled,
    loads::a_change_takes_the_overdue_mark_away,
    loads::a_reload_finds_running_probed_schedules_and_spilled,
    loads::a_fetch_answers_in_the_order_asked,
    loads::stubs_carry_what_decides_a_start,
    loads::inbox_rows_stay_until_taken_in,
    loads::inbox_rows_go_with_their_task,
    leases::a_free_shard_is_taken,
    leases::a_held_shard_is_left_to_its_holder,
    leases::a_lease_that_ran_out_is_taken_under_a_higher_epoch,
    leases::a_lease_that_ran_out_untaken_is_renewed_at_its_epoch,
    leases::only_the_holder_renews_and_releases,
    leases::a_restarted_node_takes_its_own_shards_under_new_epochs,
    leases::epochs_follow_unix_seconds_and_never_go_back,
    lists::pages_go_newest_first_over_live_and_history,
    lists::filters_hold_together,
    lists::due_lists_go_by_due_time,
    lists::counts_are_kept_by_queue_and_state,
    lists::outputs_are_kept_with_their_attempts,
    lists::retention_deletes_in_finish_order,
    lists::the_latest_runs_of_a_schedule,
    lists::statistics_are_summed_by_minute,
    lists::folding_changes_no_sum,
    lists::old_statistics_are_pruned,
    schedules::a_queue_is_created_once,
    schedules::a_queue_is_replaced_by_compare_and_set,
    schedules::a_schedule_is_created_replaced_and_deleted_by_compare_and_set,
    schedules::a_schedule_name_is_unique_in_its_namespace,
    schedules::a_schedule_advances_alone,
    schedules::schedules_are_listed_by_name,
    calendars::a_calendar_is_created_replaced_and_deleted_by_compare_and_set,
    calendars::a_version_is_never_given_twice,
    calendars::a_schedule_names_only_calendars_that_are_there,
    calendars::a_calendar_in_use_stays,
    calendars::calendars_are_listed_by_name,
    calendars::a_calendar_creates_its_namespace,
];

/// Puts a store through every behaviour.
///
/// # Panics
///
/// At the first that fails, after printing its name to standard error.
pub fn run(make: &Make<'_>) {
    for (name, case) in CASES {
        eprintln!("conformance: {name}");
        let (store, queries) = make();
        case(&World::new(store, queries));
    }
}
