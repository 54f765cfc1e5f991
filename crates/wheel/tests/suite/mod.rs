//! The conformance suite: what every timer queue must do, whatever its structure.
//!
//! `conformance!` makes one module of tests for one structure. The queue under test is made
//! by a function that takes the starting tick. Everything here goes through the public trait.

pub(crate) mod examples;
pub(crate) mod faults;
pub(crate) mod model;

/// Runs the whole suite for one structure: `conformance!(name, Type::starting_at)`.
#[macro_export]
macro_rules! conformance {
    ($name:ident, $make:expr) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            proptest::proptest! {
                #![proptest_config(proptest::prelude::ProptestConfig {
                    failure_persistence: None,
                    ..proptest::prelude::ProptestConfig::default()
                })]

                #[test]
                fn agrees_with_the_model(
                    start in $crate::suite::model::start(),
                    ops in $crate::suite::model::ops(),
                ) {
                    $crate::suite::model::run($make(start), &ops);
                }
            }

            $crate::conformance!(@tests $make;
                examples {
                    an_empty_queue_jumps,
                    equal_deadlines_fire_in_insertion_order_from_every_distance,
                    insertion_during_an_interrupted_advance_keeps_the_order,
                    overdue_timers_fire_at_the_next_advance,
                    firing_may_insert_cancel_and_reset,
                    a_round_that_feeds_itself_ends_with_its_budget,
                    a_budget_of_nothing_does_nothing,
                    reset_goes_to_the_end_of_its_tick,
                    relative_insertion_saturates,
                    a_panicking_callback_leaves_the_queue_sound,
                    sleeping_until_the_bound_reaches_every_timer,
                    drain_gives_everything_back,
                    snapshot_counts,
                }
                model {
                    churn_agrees_with_the_model,
                }
                faults {
                    far_deadlines_are_accepted_and_never_early,
                    a_far_timer_and_long_uptime_do_not_delay_a_short_one,
                    a_due_timer_can_be_removed_before_it_fires,
                    a_stale_key_removes_nothing,
                    memory_returns_when_timers_are_cancelled,
                    time_does_not_step_back,
                    a_step_forward_is_not_a_flood,
                    waking_early_or_late_keeps_the_plan,
                    a_huge_delay_starves_nobody,
                    the_count_is_right_inside_the_tick,
                    three_years_of_uptime,
                    mass_expiry_is_bounded_by_the_budget,
                }
            );
        }
    };
    (@tests $make:expr; $($module:ident { $($test:ident,)* })*) => {
        $($(
            #[test]
            fn $test() {
                $crate::suite::$module::$test($make);
            }
        )*)*
    };
}
