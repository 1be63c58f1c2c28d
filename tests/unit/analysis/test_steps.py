"""The shape of training runs: which calls end a step, what is validation, what is replay."""

from __future__ import annotations

import pytest
from factory import MS, S, Tape

from whyidle.analysis.intervals import total
from whyidle.analysis.steps import find_steps
from whyidle.record import schema

EVALUATING = 0  # neither in training mode nor with gradients


def test_a_plain_loop_has_a_step_for_each_optimizer_call() -> None:
    tape = Tape()
    tape.wait(3 * S)
    start = tape.now
    first = tape.epoch(50)
    second = tape.epoch(50)
    steps = tape.steps()
    assert steps.count == 100
    assert steps.training_iterators == {first, second}
    assert steps.first_request_ns == start
    assert steps.window == (start, steps.ends_ns[-1])
    assert steps.validation == ()
    assert steps.replayed_batches == 0
    assert steps.warm_up_end_ns is None


def test_under_accumulation_a_step_ends_with_the_last_micro_step() -> None:
    tape = Tape()
    iterator = tape.iterate()
    for micro in range(80):
        tape.next(iterator)
        tape.forward()
        tape.call("backward", 20 * MS)
        if micro % 4 == 3:
            tape.call("optimizer", 2 * MS)
    steps = tape.steps()
    assert steps.count == 20
    assert steps.micro_steps == 80
    assert steps.validation == ()


@pytest.mark.parametrize("critic_steps", [1, 5])
def test_a_gan_steps_with_the_optimizer_that_steps_most(critic_steps: int) -> None:
    tape = Tape()
    iterator = tape.iterate()
    for batch in range(60):
        tape.next(iterator)
        tape.forward(5 * MS, "Generator")
        tape.train(number=0, name="Critic")
        if batch % critic_steps == critic_steps - 1:
            tape.train(number=1, name="Generator")
    steps = tape.steps()
    assert steps.count == 60
    assert steps.validation == ()
    assert steps.training_iterators == {iterator}


def test_of_two_optimizers_in_turn_the_later_one_ends_the_step() -> None:
    tape = Tape()
    iterator = tape.iterate()
    for _ in range(10):
        tape.next(iterator)
        tape.train(number=0, name="Critic")
        tape.train(number=1, name="Generator")
        end = tape.now
    assert tape.steps().ends_ns[-1] == end


def test_a_closure_is_part_of_its_optimizer_step() -> None:
    """LBFGS calls the model and its backward pass several times from within `step`."""
    tape = Tape()
    iterator = tape.iterate()
    for _ in range(40):
        tape.next(iterator)
        with tape.inside("optimizer"):
            for _ in range(5):
                tape.forward(2 * MS)
                tape.call("backward", 4 * MS)
    steps = tape.steps()
    assert steps.count == 40
    assert steps.micro_steps == 200
    assert steps.training_iterators == {iterator}
    assert steps.validation == ()
    assert steps.warm_up_end_ns is None


def test_validation_with_a_loader_of_its_own_is_found_each_epoch() -> None:
    tape = Tape()
    validation_ns = 0
    iterators = set()
    for _ in range(4):
        tape.epoch(25)
        start = tape.now
        iterators.add(tape.validate(10, forward=10 * MS))
        validation_ns += tape.now - start
    steps = tape.steps()
    assert len(steps.validation) == 4
    assert steps.validation_iterators == iterators
    assert total(steps.validation) == pytest.approx(validation_ns, rel=0.01)
    assert not iterators & steps.training_iterators
    assert steps.last_activity_ns >= tape.now - 20 * MS


def test_making_the_next_training_iterator_is_no_part_of_validation() -> None:
    """Starting workers takes seconds; they are lost to the loader, not to validation."""
    tape = Tape()
    for _ in range(3):
        iterator = tape.iterate(duration_ns=2 * S)
        for _ in range(20):
            tape.next(iterator)
            tape.train()
        tape.next(iterator, has_ended=True)
        tape.validate(10)
    assert total(tape.steps().validation) < 1 * S


def test_validation_in_the_middle_of_an_epoch_is_found() -> None:
    tape = Tape()
    training = tape.iterate()
    for step in range(60):
        tape.next(training)
        tape.train()
        if step % 20 == 19:
            tape.validate(10)
    steps = tape.steps()
    assert len(steps.validation) == 3
    assert steps.training_iterators == {training}


def test_validation_without_a_loader_is_found() -> None:
    tape = Tape()
    for _ in range(3):
        tape.epoch(20)
        for _ in range(10):
            tape.evaluate(10 * MS)
    steps = tape.steps()
    assert len(steps.validation) == 3
    assert total(steps.validation) == 3 * 10 * 10 * MS


def test_validation_of_a_run_without_any_loader_is_found() -> None:
    tape = Tape()
    for step in range(60):
        tape.train()
        if step % 20 == 19:
            for _ in range(10):
                tape.evaluate(10 * MS)
    assert total(tape.steps().validation) == 3 * 10 * 10 * MS


def test_validation_under_no_grad_of_a_module_left_in_training_mode_is_found() -> None:
    tape = Tape()
    for _ in range(3):
        tape.epoch(20)
        iterator = tape.iterate(1)
        for _ in range(10):
            tape.next(iterator)
            tape.evaluate(10 * MS, trains=True)
        tape.next(iterator, has_ended=True)
    assert len(tape.steps().validation) == 3


def test_a_teacher_called_in_each_step_is_no_validation() -> None:
    tape = Tape()
    iterator = tape.iterate()
    for _ in range(60):
        tape.next(iterator)
        tape.evaluate(10 * MS, "Teacher")
        tape.train()
    assert tape.steps().validation == ()


def test_a_target_network_of_the_same_class_called_twice_a_step_is_no_validation() -> None:
    tape = Tape()
    for _ in range(60):
        tape.evaluate(1 * MS, "QNet")
        tape.evaluate(1 * MS, "QNet")
        tape.train(name="QNet")
    assert tape.steps().validation == ()


def test_acting_between_the_steps_is_no_validation() -> None:
    tape = Tape()
    for _ in range(60):
        for _ in range(4):
            tape.evaluate(1 * MS, "Policy", trains=True)
            tape.wait(1 * MS)
        tape.train(name="Policy")
    assert tape.steps().validation == ()


def test_a_teacher_in_each_step_does_not_hide_the_validation_of_each_epoch() -> None:
    tape = Tape()
    for _ in range(3):
        iterator = tape.iterate()
        for _ in range(20):
            tape.next(iterator)
            tape.evaluate(1 * MS)  # a moving average of the model, on two views of the batch
            tape.evaluate(1 * MS)
            tape.train()
        tape.next(iterator, has_ended=True)
        tape.validate(10)
    steps = tape.steps()
    assert len(steps.validation) == 3
    assert total(steps.validation) > 3 * 10 * 10 * MS


def test_frameworks_that_fetch_one_batch_ahead_have_the_same_steps() -> None:
    tape = Tape()
    for _ in range(3):
        iterator = tape.iterate()
        tape.next(iterator)
        for at in range(20):
            tape.next(iterator, has_ended=at == 19)
            tape.train()
        validating = tape.iterate(1)
        tape.next(validating)
        for at in range(10):
            tape.next(validating, has_ended=at == 9)
            tape.evaluate()
    steps = tape.steps()
    assert steps.count == 60
    assert len(steps.validation) == 3
    assert len(steps.training_iterators) == 3
    assert total(steps.validation) >= 3 * 10 * 10 * MS
    assert steps.replayed_batches == 0


def test_a_sanity_check_before_training_is_start_up() -> None:
    tape = Tape()
    tape.validate(2, forward=10 * MS)
    start = tape.now
    tape.epoch(100)
    steps = tape.steps()
    assert steps.count == 100
    assert steps.window[0] == start


def test_a_sanity_check_before_training_does_not_warm_up_the_first_step() -> None:
    tape = Tape()
    tape.validate(2, forward=500 * MS)
    tape.epoch(100)
    assert tape.steps().warm_up_end_ns is None


def test_batches_drawn_to_skip_them_after_a_resume_are_replay() -> None:
    tape = Tape()
    iterator = tape.iterate()
    start = tape.now
    for _ in range(600):
        tape.next(iterator, 5 * MS)
    end = tape.now
    for _ in range(200):
        tape.next(iterator, 5 * MS)
        tape.train()
    steps = tape.steps()
    assert steps.replayed_batches == 600
    assert steps.replay == ((start, end),)
    assert steps.count == 200


@pytest.mark.parametrize("drawn", [1, 19])
def test_a_peek_at_the_data_is_no_replay(drawn: int) -> None:
    tape = Tape()
    iterator = tape.iterate()
    for _ in range(drawn):
        tape.next(iterator)
    for _ in range(50):
        tape.next(iterator)
        tape.train()
    assert tape.steps().replayed_batches == 0


def test_a_pass_over_the_data_before_training_is_start_up() -> None:
    """Mean and deviation of the data set, from an iterator that feeds no step."""
    tape = Tape()
    statistics = tape.iterate()
    for _ in range(200):
        tape.next(statistics, 5 * MS)
    tape.next(statistics, has_ended=True)
    start = tape.now
    tape.epoch(50)
    steps = tape.steps()
    assert steps.replayed_batches == 0
    assert steps.first_request_ns == start


def test_validation_batches_are_never_replay() -> None:
    tape = Tape()
    tape.epoch(30)
    tape.validate(100)
    tape.epoch(30)
    assert tape.steps().replayed_batches == 0


def test_leading_steps_that_compile_are_warm_up() -> None:
    tape = Tape()
    iterator = tape.iterate()
    for at in range(60):
        tape.next(iterator)
        tape.train(forward=8 * S if at < 2 else 10 * MS)
    steps = tape.steps()
    assert steps.warm_up_end_ns == steps.ends_ns[1]
    assert steps.count == 58


def test_a_slow_step_later_on_is_no_warm_up() -> None:
    tape = Tape()
    iterator = tape.iterate()
    for at in range(60):
        tape.next(iterator)
        tape.train(forward=8 * S if at == 5 else 10 * MS)
    assert tape.steps().warm_up_end_ns is None


def test_waiting_for_the_first_batch_is_no_warm_up() -> None:
    tape = Tape()
    iterator = tape.iterate(duration_ns=10 * S)
    for at in range(60):
        tape.next(iterator, 10 * S if at == 0 else 1 * MS)
        tape.train()
    assert tape.steps().warm_up_end_ns is None


def test_a_short_run_has_no_warm_up() -> None:
    tape = Tape()
    iterator = tape.iterate()
    for at in range(12):
        tape.next(iterator)
        tape.train(forward=8 * S if at == 0 else 10 * MS)
    assert tape.steps().warm_up_end_ns is None


def test_the_window_ends_with_the_last_save() -> None:
    tape = Tape()
    tape.epoch(30)
    tape.call("checkpoint", 2 * S)
    end = tape.now
    tape.wait(60 * S)
    assert tape.steps().last_activity_ns == end


def test_a_data_set_that_calls_a_model_makes_no_steps_of_it() -> None:
    tape = Tape()
    iterator = tape.iterate()
    for _ in range(40):
        start = tape.now
        tape.evaluate(3 * MS, "FeatureNet")
        tape.tables[schema.NEXT].append((tape.thread, start, tape.now, iterator, -1, -1, 0, 0))
        tape.train()
    steps = tape.steps()
    assert steps.count == 40
    assert steps.validation == ()


def test_a_run_that_only_infers_has_no_steps() -> None:
    tape = Tape()
    tape.validate(50)
    assert find_steps(tape.spans(), tape.ended_nexts()) is None


def test_nothing_at_all_has_no_steps() -> None:
    assert find_steps([]) is None


def test_one_step_is_a_run_of_one_step() -> None:
    tape = Tape()
    tape.epoch(1)
    steps = tape.steps()
    assert steps.count == 1
    assert steps.window == (steps.first_request_ns, steps.ends_ns[0])


def test_an_optimizer_stepped_once_before_training_leaves_a_window() -> None:
    """A step to calm the scheduler, then updates by hand."""
    tape = Tape()
    tape.call("optimizer", 1 * MS)
    tape.wait(1 * S)
    iterator = tape.iterate()
    for _ in range(40):
        tape.next(iterator)
        tape.forward()
        tape.call("backward", 20 * MS)
    low, high = tape.steps().window
    assert high >= low
