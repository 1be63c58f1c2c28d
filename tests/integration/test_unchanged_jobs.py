"""A job under whyidle prints, raises and ends byte for byte as it does alone.

Every file in `jobs/` is such a job. A first line `# steps: N` says how many optimizer steps whyidle
must have seen in it, `# steps: -` that it does not matter.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.lab import JOBS, Lab

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def wanted_steps(job: Path) -> int | None:
    word = job.read_text().splitlines()[0].removeprefix("# steps:").strip()
    return None if word == "-" else int(word)


@pytest.mark.parametrize("job", sorted(JOBS.glob("*.py")), ids=lambda job: job.stem)
def test_nothing_changes(lab: Lab, job: Path) -> None:
    bare, observed = lab.both(sys.executable, job)
    assert observed.stdout == bare.stdout
    assert observed.stderr == bare.stderr
    assert observed.exit_code == bare.exit_code
    assert "probe_failed" not in str([process.notes_of("problem") for process in observed.record.processes])
    wanted = wanted_steps(job)
    assert wanted is None or observed.steps == wanted
