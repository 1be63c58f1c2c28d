"""From stack samples to the line of the user's source to name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from whyidle.analysis.facts import Line
from whyidle.analysis.stacks import Frame, Sample, Sources, hottest


class Lines:
    """Turns samples into the line to name."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def of(self, samples: Sequence[Sample]) -> Line | None:
        found = hottest(list(samples))
        if found is None:
            return None
        frame, share = found
        source = self._sources.get((frame.file, frame.line))
        libraries: Counter[str] = Counter()
        for sample in samples:
            libraries.update(set(sample.stack.libraries))
        loops: Counter[str] = Counter()
        for sample in samples:
            loop = self.loop_of(sample)
            if loop is not None:
                loops[loop] += 1
        loop_line, _ = loops.most_common(1)[0] if loops else (None, 0)
        return Line(
            place=frame.place,
            share_ratio=share,
            text=source.text if source is not None else None,
            function=frame.function,
            function_share_ratio=_in_function(samples, frame) / len(samples),
            loop_line=loop_line,
            loop_share_ratio=sum(loops.values()) / len(samples),
            libraries={name: count / len(samples) for name, count in libraries.most_common(5)},
        )

    def loop_of(self, sample: Sample) -> str | None:
        """The Python loop that a sample stands in, in the innermost user frame that has one."""
        for frame in sample.stack.frames:
            source = self._sources.get((frame.file, frame.line))
            if source is not None and source.inner_loop_line is not None:
                return f"{frame.place.rsplit(':', 1)[0]}:{source.inner_loop_line}"
        return None


def _in_function(samples: Sequence[Sample], frame: Frame) -> int:
    """Samples whose innermost user frames pass through the function of `frame`; comprehensions count
    for the function around them."""
    return sum(
        1
        for sample in samples
        if any(
            each.file == frame.file and each.function == frame.function for each in sample.stack.frames[:3]
        )
    )
