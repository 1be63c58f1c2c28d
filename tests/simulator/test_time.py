"""Virtual time: every expectation here follows from the books, none from how fast this machine is."""

from __future__ import annotations

import itertools
import threading

import pytest
import simgpu
import torch

MS = 1_000_000


def timed_event() -> simgpu.Event:
    event = torch.simgpu.Event(enable_timing=True)
    event.record()
    return event


def lengths(intervals: list[tuple[int, int]]) -> list[int]:
    return [b - a for a, b in intervals]


def test_busy_returns_at_once_and_truth_shows_the_whole_kernel() -> None:
    before_ns = simgpu.now_ns()
    simgpu.busy(30)
    enqueued_ns = simgpu.now_ns()
    simgpu.synchronize()
    [(start_ns, end_ns)] = simgpu.truth()
    assert before_ns <= start_ns <= enqueued_ns < end_ns
    assert end_ns - start_ns == 30 * MS
    assert simgpu.now_ns() >= end_ns


def test_truth_ends_now_while_work_is_still_queued() -> None:
    simgpu.busy(500)
    [(start_ns, end_ns)] = simgpu.truth()
    assert end_ns - start_ns < 500 * MS
    assert lengths(simgpu.truth(end_ns=start_ns + 1000 * MS)) == [500 * MS]


def test_back_to_back_kernels_are_one_interval() -> None:
    for _ in range(3):
        simgpu.busy(50)
    simgpu.synchronize()
    assert lengths(simgpu.truth()) == [150 * MS]


def test_bubbles_are_the_rest_of_the_window() -> None:
    start_ns = simgpu.now_ns()
    simgpu.busy(4)
    simgpu.synchronize()
    simgpu.busy(3)
    simgpu.synchronize()
    end_ns = simgpu.now_ns()
    busy_ns, idle_ns = simgpu.busy_ns(start_ns, end_ns), simgpu.idle_ns(start_ns, end_ns)
    assert busy_ns == 7 * MS
    assert idle_ns == sum(lengths(simgpu.bubbles(start_ns, end_ns)))
    assert busy_ns + idle_ns == end_ns - start_ns


def test_elapsed_time_is_exact() -> None:
    start, _, end = timed_event(), simgpu.busy(12.5), timed_event()
    end.synchronize()
    [(busy_from_ns, busy_to_ns)] = simgpu.truth()
    assert end.reached_ns == busy_to_ns
    assert start.elapsed_time(end) == (busy_to_ns - start.reached_ns) / 1e6
    assert start.reached_ns <= busy_from_ns


def test_events_around_hidden_host_time_measure_nothing() -> None:
    simgpu.busy(100)
    start, end = timed_event(), timed_event()
    simgpu.synchronize()
    assert start.elapsed_time(end) == 0.0


def test_events_around_an_idle_stretch_measure_the_bubble() -> None:
    simgpu.busy(1)
    simgpu.synchronize()
    start = timed_event()
    end = timed_event()
    end.synchronize()
    bubble_ns = simgpu.idle_ns(start.reached_ns, end.reached_ns)
    assert round(start.elapsed_time(end) * 1e6) == bubble_ns == end.reached_ns - start.reached_ns


def test_event_query_and_synchronize() -> None:
    assert torch.simgpu.Event().query()
    simgpu.busy(100)
    event = timed_event()
    assert not event.query()
    event.synchronize()
    assert event.query()


def test_elapsed_time_errors_are_those_of_a_real_device() -> None:
    with pytest.raises(ValueError, match="recorded"):
        timed_event().elapsed_time(torch.simgpu.Event(enable_timing=True))
    with pytest.raises(ValueError, match="enable_timing"):
        timed_event().elapsed_time(torch.simgpu.Event())
    start, _, end = timed_event(), simgpu.busy(500), timed_event()
    with pytest.raises(RuntimeError, match="not ready"):
        start.elapsed_time(end)


def test_torch_event_is_a_device_event() -> None:
    start, end = (torch.Event(device="simgpu", enable_timing=True) for _ in range(2))
    simgpu.busy(50)
    start.record()
    simgpu.busy(3)
    end.record()
    end.synchronize()
    assert isinstance(start, torch.Event)
    assert start.elapsed_time(end) == 3.0
    assert not isinstance(torch.Event(device="cpu"), simgpu.Event)


def test_streams_overlap() -> None:
    side = torch.simgpu.Stream()
    simgpu.busy(100)
    with torch.simgpu.stream(side):
        simgpu.busy(100)
    simgpu.synchronize()
    [only] = lengths(simgpu.truth())
    assert 100 * MS <= only < 200 * MS


def test_wait_event_orders_two_streams() -> None:
    side = torch.Stream(device="simgpu")
    simgpu.busy(60)
    done = timed_event()
    side.wait_event(done)
    with side:
        simgpu.busy(10)
        after = timed_event()
    simgpu.synchronize()
    assert done.elapsed_time(after) == 10.0
    assert lengths(simgpu.truth()) == [70 * MS]


def test_wait_stream_orders_two_streams() -> None:
    side = torch.simgpu.Stream()
    with torch.simgpu.stream(side):
        simgpu.busy(60)
    torch.simgpu.current_stream().wait_stream(side)
    simgpu.busy(10)
    simgpu.synchronize()
    assert lengths(simgpu.truth()) == [70 * MS]


def test_stream_context_is_restored_and_compares_equal() -> None:
    default = torch.simgpu.current_stream()
    side = torch.simgpu.Stream()
    with torch.simgpu.stream(side):
        assert torch.simgpu.current_stream() == side
        with torch.simgpu.stream(None):
            assert torch.accelerator.current_stream() == side
    assert torch.simgpu.current_stream() == default == torch.simgpu.default_stream()


def test_another_thread_starts_on_the_default_stream() -> None:
    seen = []
    with torch.simgpu.stream(torch.simgpu.Stream()):
        thread = threading.Thread(target=lambda: seen.append(torch.simgpu.current_stream()))
        thread.start()
        thread.join()
    assert seen == [torch.simgpu.default_stream()]


def test_backward_runs_on_the_stream_of_the_training_thread() -> None:
    simgpu.configure(keep_kernels=True)
    weight = torch.ones(4, 4, device="simgpu", requires_grad=True)
    side = torch.simgpu.Stream()
    with torch.simgpu.stream(side):
        (weight @ weight).sum().backward()
    used = {kernel.stream_id for kernel in simgpu.kernels() if kernel.name == "mm"}
    assert used == {side.stream_id}
    assert sum(kernel.name == "mm" for kernel in simgpu.kernels()) == 3


def test_cost_follows_flops_and_bytes() -> None:
    simgpu.configure(flops_per_s=1e9, bytes_per_s=1e9, kernel_floor_us=2, keep_kernels=True)
    a, b = torch.ones(100, 200, device="simgpu"), torch.ones(200, 50, device="simgpu")
    simgpu.forget()
    _ = a @ b
    _ = a + a
    product, addition = simgpu.kernels()
    assert product.end_ns - product.start_ns == 2 * 100 * 200 * 50 + 2000
    assert addition.end_ns - addition.start_ns == 3 * a.nbytes + 2000


def test_convolution_cost() -> None:
    simgpu.configure(flops_per_s=1e9, bytes_per_s=1e15, kernel_floor_us=0, keep_kernels=True)
    conv = torch.nn.Conv2d(3, 8, 3).to("simgpu")
    image = torch.ones(2, 3, 10, 10, device="simgpu")
    simgpu.forget()
    conv(image).sum().backward()
    cost_ns = {k.name: k.end_ns - k.start_ns for k in simgpu.kernels()}
    forward_flops = 2 * (2 * 8 * 8) * (8 * 3 * 3 * 3)
    assert cost_ns["convolution"] == forward_flops
    assert cost_ns["convolution_backward"] == forward_flops  # the image needs no gradient


def test_views_cost_nothing() -> None:
    a = torch.ones(8, 8, device="simgpu")
    simgpu.forget()
    _ = a.t()[1:, ::2].unsqueeze(0).expand(3, -1, -1), a.view(-1), a.detach()
    assert simgpu.counters().kernels_count == 0


def test_launch_time_is_a_floor_for_the_host() -> None:
    a = torch.ones(2, device="simgpu")
    simgpu.configure(launch_us=300, keep_kernels=True, kernel_floor_us=1)
    for _ in range(4):
        a.add_(1)
    starts_ns = [kernel.start_ns for kernel in simgpu.kernels()]
    assert all(b - a >= 300_000 for a, b in itertools.pairwise(starts_ns))


def test_unknown_rate_is_refused() -> None:
    with pytest.raises(TypeError, match="flops_per_s"):
        simgpu.configure(flops=1)
