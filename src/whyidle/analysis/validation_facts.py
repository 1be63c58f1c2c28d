"""Facts about evaluation between the steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from whyidle.analysis.facts import Loader, Phase, Validation
from whyidle.analysis.trainer import Trainer
from whyidle.record import schema


def validation_facts(
    trainer: Trainer, phases: Mapping[str, Phase], loader: Loader | None, step_mean_ns: float
) -> Validation | None:
    phase = phases.get("validation")
    if phase is None:
        return None
    low, high = trainer.steps.window
    settings = {note["id"]: note["settings"] for note in trainer.process.notes_of("loader")}
    loaders = {note["id"]: note["loader"] for note in trainer.process.notes_of("iterator")}
    batch_sizes = [
        settings.get(loaders.get(number, -1), {}).get("batch_size")
        for number in trainer.steps.validation_iterators
    ]
    sizes = [size for size in batch_sizes if isinstance(size, int)]
    batches = sum(
        1
        for row in trainer.process.rows(schema.NEXT)
        if row[3] in trainer.steps.validation_iterators and not row[7] and low <= row[1] < high
    )
    if not batches:  # no loader: count the model's calls
        batches = sum(
            1
            for span in trainer.spans
            if span.kind == "forward"
            and any(start <= span.t0_ns < end for start, end in trainer.steps.validation)
        )
    batch_size = Counter(sizes).most_common(1)[0][0] if sizes else None
    training_rate = None
    if loader is not None and loader.batch_size and step_mean_ns:
        training_ns = high - low - phase.host_ns
        training_rate = (
            loader.batches_count * loader.batch_size / training_ns * 1e9 if training_ns > 0 else None
        )
    return Validation(
        time_ns=phase.host_ns,
        batches_count=batches,
        batch_size=batch_size,
        samples_per_s=batches * batch_size / phase.host_ns * 1e9 if batch_size and phase.host_ns else None,
        training_samples_per_s=training_rate,
        forward_per_sample_ns=phases["forward"].host_ns / (loader.batches_count * loader.batch_size)
        if loader is not None and loader.batch_size and loader.batches_count and "forward" in phases
        else None,
        line=phase.line,
    )
