"""Protections against bad volunteers, each with the test that shows it."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Claim:
    """A protection against bad volunteers, and the test in `tests/training/` that shows it."""

    words: str
    file: str
    test: str


CLOSED: Final = (
    Claim(
        "A volunteer that sends values that are not finite, parts of the wrong shape or absurd "
        "weights is left out of that round, and the others continue.",
        "averaging/test_guard.py",
        "test_bad_values_and_weights_are_refused_or_cut_and_the_others_go_on",
    ),
    Claim(
        "A record is stored and believed only if it is under one of the run's keys and its owner's "
        "one subkey and signed by the owner. It is at most 16 kB, for at most 15 minutes.",
        "records/test_validator.py",
        "test_what_its_owner_did_not_write_is_refused",
    ),
    Claim(
        "No stored record can make a reader fail: records that cannot be read are skipped.",
        "records/test_validator.py",
        "test_readers_never_raise",
    ),
    Claim(
        "A malformed record, which names its owner twice and claims to be valid for thirty years, "
        "stops no one's training.",
        "records/test_validator.py",
        "test_an_owner_has_one_subkey",
    ),
    Claim(
        "A value without an owner does not keep honest records out of the table.",
        "records/test_records.py",
        "test_a_plain_value_does_not_keep_honest_records_out",
    ),
    Claim(
        "A peer counts once, no matter how many records it writes with its key.",
        "records/test_records.py",
        "test_one_liar_is_one_peer_and_does_not_fill_the_batch",
    ),
    Claim(
        "If the run has an authority, records from keys without access are rejected.",
        "records/test_validator.py",
        "test_where_there_is_an_authority_a_record_shows_access",
    ),
    Claim(
        "While others train, a volunteer's sequences are credited only if another peer saw it in "
        "an averaging round.",
        "monitor/test_tally.py",
        "test_a_late_report_is_checked_like_one_in_time",
    ),
    Claim(
        "A step that one of three or more volunteers claims ahead of the others is not written "
        "and earns nothing.",
        "monitor/test_tally.py",
        "test_a_step_that_one_claims_ahead_of_the_others_is_not_written",
    ),
    Claim(
        "A checkpoint must match its published hash and hold exactly the tensors of the run's own "
        "model.",
        "model/test_checkpoint.py",
        "test_weights_that_are_not_all_of_the_models_are_refused",
    ),
    Claim(
        "Code or kernels that a checkpoint's configuration names are never loaded.",
        "model/test_checkpoint.py",
        "test_a_configuration_names_no_kernel_and_no_code",
    ),
    Claim(
        "Broken rows of the training data are skipped and counted.",
        "data/test_reading.py",
        "test_a_broken_row_is_left_out_and_counted",
    ),
    Claim(
        "A part of a data file that unpacks to more than 256 MiB, by the file's own account, is "
        "never unpacked.",
        "data/test_reading.py",
        "test_a_shard_that_unpacks_to_much_is_left_out",
    ),
    Claim(
        "A stored token goes to an authority on another machine only after its owner has agreed "
        "to send it to that server.",
        "access/test_trust.py",
        "test_without_a_yes_the_token_is_not_handed_out",
    ),
    Claim(
        "If the run file pins the authority's key, no other server can pass for the authority.",
        "access/test_trust.py",
        "test_an_authority_with_another_key_than_the_run_files_is_refused",
    ),
    Claim(
        "With an authority, an account takes part with one device at a time unless the organizers "
        "allow more.",
        "access/test_trust.py",
        "test_an_account_takes_part_with_one_device_at_a_time",
    ),
    Claim(
        "In a run with local steps, an update that raises the loss, copies another one or has "
        "hardly any effect is left out by everyone, because the monitor signs the list of the "
        "updates that a round takes.",
        "sparse/test_judging.py",
        "test_a_bad_peer_is_left_out_and_the_others_are_not",
    ),
    Claim(
        "Members that send bad updates end no round: a round lasts at least the time of its local "
        "steps, only updates that are kept count for its end, and a slow connection that was "
        "missing in one round is waited for in the next.",
        "sparse/test_waiting.py",
        "test_two_bad_members_end_no_round_before_the_honest_have_sent",
    ),
    Claim(
        "The time that a volunteer is credited with is what the monitor heard, whatever the "
        "volunteer says.",
        "monitor/test_round_books.py",
        "test_time_is_what_the_monitor_heard_whatever_a_volunteer_says",
    ),
    Claim(
        "An update for another round, or for other weights than the round's, is rejected, so "
        "nobody's file can be used again.",
        "sparse/test_rounds.py",
        "test_a_bad_payload_is_left_out_with_a_reason",
    ),
)
BOUNDED: Final = (
    Claim(
        "CenteredClip limits the effect of gradients that are finite but wrong, as long as fewer "
        "than half of the volunteers in a group of three or more are bad. With the mean, and in a "
        "run of two, only a gradient's length is limited: one value of 10<sup>30</sup> does not "
        "get through.",
        "averaging/test_aggregation.py",
        "test_one_value_of_1e30_does_not_pass",
    ),
    Claim(
        "With CenteredClip, a group that makes a step has at least three peers and more than half "
        "of those present; only a run of two has groups of two.",
        "averaging/test_guard.py",
        "test_two_of_three_are_no_group_where_the_honest_must_be_more",
    ),
    Claim(
        "A gradient's weight counts only as far as its sender's pace in earlier rounds supports "
        "it. No pace counts for more than four times the median pace, and a newcomer's for no more "
        "than the median.",
        "averaging/test_progress.py",
        "test_a_liar_that_was_witnessed_for_long_still_counts_for_little",
    ),
    Claim(
        "A single peer can't end a step early with false claims of sequences or pace or with an "
        "old report: others count only what a believable pace could have computed since the step "
        "began. A peer that has just joined does not know when the step began, and believes claims "
        "of up to one batch until the next step.",
        "records/test_records.py",
        "test_one_liar_is_one_peer_and_does_not_fill_the_batch",
    ),
    Claim(
        "A claim to be far ahead is ignored as long as fewer than a quarter of the peers make it. "
        "Among three peers, a single claim is believed.",
        "averaging/test_progress.py",
        "test_a_quarter_of_the_peers_may_be_wrong_about_the_step",
    ),
    Claim(
        "A newcomer compares the weights that it gets from a peer with those of two others: the "
        "length of each tensor, and values at random places. If only one peer can be asked, its "
        "word is taken.",
        "averaging/test_donors.py",
        "test_a_bad_donor_is_left_for_the_next",
    ),
    Claim(
        "For steps that the monitor missed while it was down, volunteers are credited as they "
        "report, with at most one batch each per step.",
        "monitor/test_tally.py",
        "test_a_newcomer_made_no_steps_before_it_came",
    ),
    Claim(
        "In a run with local steps, an update that helps but is far too long counts with at most "
        "four times the median length, and no update counts for more than eight times the median "
        "number of sequences.",
        "sparse/test_judging.py",
        "test_an_update_that_helps_and_is_far_too_long_is_shortened",
    ),
    Claim(
        "A volunteer whose record was good and that turns bad is measured with a probability of "
        "one in four per round, until it is caught; from then on, always.",
        "sparse/test_judging.py",
        "test_newcomers_and_whoever_was_left_out_are_always_measured",
    ),
)
