"""The part of a trajectory that belongs to the output tokens."""

from workers.samples import CommitTrace, TokenTrace

TRACE = CommitTrace(
    positions=(5, 3, 4, 6),
    tokens=(50, 30, 40, 60),
    steps=(0, 1, 2, 2),
    log_probabilities=(-0.5, -0.3, -0.4, -0.6),
    confidences=(-5.0, -3.0, -4.0, -6.0),
)


def test_token_traces_are_in_the_order_of_positions_and_end_with_the_tokens() -> None:
    assert TRACE.of_tokens(3, 3) == TokenTrace(
        steps=(1, 2, 0), log_probabilities=(-0.3, -0.4, -0.5), confidences=(-3.0, -4.0, -5.0)
    )


def test_commits_of_one_transition_are_counted_once() -> None:
    assert TRACE.num_transitions == 3
    nothing = CommitTrace(positions=(), tokens=(), steps=(), log_probabilities=(), confidences=())
    assert nothing.num_transitions == 0


def test_a_sample_without_tokens_has_an_empty_trace() -> None:
    assert TRACE.of_tokens(3, 0) == TokenTrace(steps=(), log_probabilities=(), confidences=())
