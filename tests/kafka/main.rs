//! Tests against a real Kafka, which this program starts, and stops in any case. The cases `cluster::…` and `faults::…` of `chaos` start
//! three brokers of their own.
//!
//! A test is a function in a module below and one line in [`cases`]. Four cases run side by side, each on topics and groups of its own; a
//! case that needs the machine for itself is a `Case::alone` and says why. `TOLLGATE_TEST_BROKERS` names a running cluster that cases share
//! instead of a broker of our own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod abuse;
mod abuse_commands;
mod bad_day;
mod benchmark;
mod capture;
mod chaos;
mod clients;
mod control_fleet;
mod controls;
mod dead_worker;
mod dev;
mod diff;
mod dlq;
mod formats;
mod hidden_controls;
mod lost_transaction_ends;
mod membership;
mod pass_through;
mod prometheus;
mod rekey;
mod remote;
mod replay;
mod rights;
mod security;
mod serve;
mod shadow;
mod state;
mod state_command;
mod topics;
mod traffic;
mod trouble;
mod upgrade;
mod verdicts;
mod why;

use std::path::PathBuf;
use std::process::{ExitCode, Output};

use tollgate_testkit::harness::{self, Case};
use tollgate_testkit::{sharing, stopping};

/// Returns the cases on one broker: `sharing!` for a case that uses only its own topics and groups. A case that
/// stops its broker is `stopping!` and has another broker. Cases begin in this order, so those that take longest come first.
fn cases() -> Vec<Case> {
    vec![
        stopping!(chaos::faults_change_no_verdict),
        sharing!(state::a_zombie_does_no_harm),
        sharing!(security::every_mechanism_works_with_the_least_rights),
        sharing!(security::secrets_change_under_running_workers),
        sharing!(security::every_command_logs_in_by_every_mechanism),
        sharing!(rekey::threads_follow_their_topic_through_kills),
        sharing!(remote::a_crash_asks_again_at_most_once),
        stopping!(controls::the_table_outlives_a_broker_restart),
        sharing!(abuse::kills_change_no_signal_alert_or_control),
        sharing!(upgrade::two_policies_share_a_group_while_a_change_rolls_out),
        stopping!(replay::a_broker_that_is_away_delays_a_replay),
        sharing!(abuse::warming::a_new_rule_warms_up_while_the_others_go_on),
        sharing!(benchmark::a_benchmark_measures_and_cleans_up),
        stopping!(membership::a_stop_ends_though_the_brokers_are_away),
        sharing!(rights::each_refusal_is_named_once_with_its_grant),
        sharing!(security::each_right_that_is_wanting_is_named),
        sharing!(topics::each_right_is_named_with_its_grant),
        sharing!(membership::two_workers_with_one_instance_id_are_told_so),
        stopping!(membership::a_second_signal_ends_at_once),
        sharing!(verdicts::a_thousand_threads_get_the_verdicts_of_eval),
        sharing!(verdicts::a_verdict_follows_its_event),
        sharing!(verdicts::envelopes_are_opened),
        sharing!(capture::a_capture_holds_every_byte),
        sharing!(capture::a_capture_goes_on_behind_what_it_holds),
        sharing!(capture::a_redacted_capture_is_decided_alike),
        sharing!(capture::what_retention_has_taken_is_told),
        sharing!(capture::what_is_followed_ends_with_a_signal),
        sharing!(capture::stand_ins_keep_their_key),
        sharing!(diff::a_topic_that_shrinks_is_not_whole),
        sharing!(formats::a_capture_gets_the_verdicts_of_the_worker),
        sharing!(replay::a_replay_gets_the_verdicts_of_eval),
        sharing!(replay::what_retention_takes_meanwhile_is_told),
        sharing!(trouble::costly_events_let_other_partitions_go_first),
        sharing!(trouble::unreadable_records_become_dead_letters),
        sharing!(trouble::oversized_records_lose_nothing),
        sharing!(trouble::a_missing_topic_is_named),
        sharing!(trouble::a_refused_verdict_is_named),
        sharing!(trouble::a_refused_checkpoint_is_named),
        sharing!(trouble::replies_go_where_they_are_allowed),
        sharing!(bad_day::a_lost_reader_of_stderr_stops_nothing),
        sharing!(bad_day::a_full_stderr_stops_nothing),
        stopping!(bad_day::a_broker_that_is_away_is_named_and_the_lag_unknown),
        sharing!(bad_day::a_thread_that_panics_is_seen_and_started_over),
        sharing!(bad_day::a_thread_that_cannot_be_started_over_ends_the_process),
        sharing!(trouble::the_admin_endpoint_tells_the_condition),
        sharing!(trouble::a_full_queue_loses_nothing),
        sharing!(trouble::no_record_holds_its_partition_up),
        sharing!(state_command::threads_are_shown_and_listed),
        sharing!(state_command::a_reset_clears_what_blocks_a_thread),
        sharing!(state_command::what_is_not_there_is_named),
        sharing!(state_command::brokers_that_are_away_end_every_command),
        sharing!(topics::topics_are_created_once),
        sharing!(topics::what_differs_is_changed_and_nothing_else),
        sharing!(topics::state_never_loses_its_partition),
        sharing!(topics::two_runs_at_once_agree),
        sharing!(topics::brokers_are_waited_for),
        sharing!(dlq::letters_are_listed_by_reason),
        sharing!(dlq::a_letter_goes_back_as_it_came),
        sharing!(dlq::a_letter_that_fails_again_is_not_sent_again),
        sharing!(controls::a_suspension_blocks_on_every_partition_of_two_workers),
        sharing!(controls::nothing_is_decided_before_the_controls_are_known),
        sharing!(controls::a_control_that_cannot_be_read_restricts),
        sharing!(controls::no_partition_lifts_what_another_restricts),
        sharing!(controls::what_does_not_fit_is_named),
        sharing!(control_fleet::a_switch_that_no_worker_would_find_is_refused),
        sharing!(control_fleet::a_suspension_waits_for_every_worker),
        sharing!(control_fleet::a_suspension_does_not_wait_for_a_topic_that_cannot_be_read),
        sharing!(control_fleet::the_history_says_who_switched_what),
        sharing!(hidden_controls::an_open_transaction_holds_up_no_suspension),
        sharing!(hidden_controls::a_suspension_that_is_aborted_goes_again),
        sharing!(abuse_commands::a_subject_is_shown_listed_and_counted),
        sharing!(abuse_commands::an_offender_is_suspended_and_pardoned),
        sharing!(abuse_commands::a_rule_is_forgiven_and_resumed),
        sharing!(dev::dev_works_on_topics_of_its_own),
        sharing!(dev::tap_begins_where_it_is_asked_to),
        sharing!(why::it_tells_what_led_to_a_stop),
        sharing!(why::it_tells_the_nearest_entry_of_a_list),
        sharing!(why::it_tells_who_switched_a_control),
        sharing!(why::what_is_not_found_is_said),
        sharing!(why::a_range_of_verdicts_is_in_the_order_of_times),
        sharing!(shadow::flips_are_those_of_two_runs),
        sharing!(shadow::a_judge_that_stands_still_holds_no_verdict_up),
        sharing!(shadow::a_judge_that_panics_starts_over),
        sharing!(shadow::what_cannot_be_tried_is_refused),
        sharing!(pass_through::a_pass_through_answers_every_record_and_commits),
        sharing!(security::each_refusal_of_a_login_has_its_own_reason),
        sharing!(clients::the_python_client_does_what_verdicts_say),
        sharing!(clients::the_rust_client_does_what_verdicts_say),
        sharing!(membership::a_stopped_worker_leaves_nothing_to_repeat),
        sharing!(membership::a_stopped_worker_is_no_member),
        sharing!(membership::a_static_member_keeps_its_partitions),
        sharing!(dead_worker::a_killed_worker_is_missed_before_its_session_is_over),
        sharing!(dead_worker::a_worker_with_a_longer_session_is_not_missed),
        sharing!(dead_worker::a_worker_that_thaws_joins_again),
        sharing!(dead_worker::a_member_that_is_not_taken_back_starts_over),
        sharing!(membership::the_consumer_protocol_works_too),
        sharing!(state::unreadable_state_holds_its_partition_back),
        sharing!(state::state_that_is_not_ours_is_not_taken),
        sharing!(state::what_the_state_knows_is_skipped),
        sharing!(lost_transaction_ends::a_checkpoint_whose_commit_was_lost_is_written_again),
        sharing!(lost_transaction_ends::a_transaction_of_somebody_else_is_named_and_waited_for),
        sharing!(state::a_state_topic_that_does_not_fit_is_named),
        sharing!(state::a_checkpoint_fits_its_topic),
        sharing!(state::a_planned_move_waits_for_no_session),
        sharing!(rekey::a_topic_that_grows_under_a_worker_is_named),
        sharing!(rekey::threads_that_are_elsewhere_are_named),
        sharing!(rekey::a_large_state_moves),
        sharing!(abuse::a_repeat_offender_is_suspended_on_every_partition),
        sharing!(abuse::one_worker_runs_both_stages),
        sharing!(abuse::a_missing_topic_of_abuse_is_named),
        sharing!(prometheus::rules_and_panels_get_what_they_ask_for),
        sharing!(remote::a_thread_that_waits_delays_no_other),
        sharing!(remote::a_server_that_is_down_closes_calls),
        sharing!(serve::a_killed_server_allows_nothing),
        sharing!(serve::a_replies_topic_that_goes_away_is_named),
        sharing!(serve::a_clock_that_brokers_refuse_is_named),
    ]
}

fn main() -> ExitCode {
    // Members of the plain group and benchmarks are processes of their own: this program, started anew.
    if let Some(code) = chaos::run_plain_member_if_asked().or_else(benchmark::run_if_asked) {
        return code;
    }
    let cases = match chaos::cases() {
        Ok(of_cluster) => cases().into_iter().chain(of_cluster).collect(),
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::from(2);
        }
    };
    harness::run(cases, &tollgate(), &target_tmpdir())
}

/// Returns the binary under test.
fn tollgate() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_tollgate"))
}

/// Returns what a command has said beside its output.
fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns cargo's folder for the files of tests.
fn target_tmpdir() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}
