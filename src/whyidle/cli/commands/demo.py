"""`whyidle demo`: a small real training job with a planted cause, through the same path as `whyidle run`."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

SUMMARY = "see whyidle find a planted cause in a small job"
FOLDER = Path(__file__).resolve().parents[2] / "demos"


class Demo(NamedTuple):
    """A script in `demos/`: what it does, what is planted in it, and what it imports besides torch."""

    story: str
    cause: str | None
    needs: tuple[str, ...] = ()


DEMOS = {
    "photos": Demo("decodes and augments photos in the loop", "loader_without_workers", ("numpy", "PIL")),
    "short_epochs": Demo("starts its workers anew each epoch", "workers_rebuilt_each_epoch", ("numpy",)),
    "hinge_loss": Demo("computes its loss in Python loops", "loss_in_python"),
    "running_metrics": Demo("scores the last batches at every step", "metrics_on_host", ("numpy",)),
    "chatty_log": Demo("logs every layer at every step", "logging_too_often"),
    "eager_checkpoints": Demo("saves every five steps", "checkpoint_blocks"),
    "healthy": Demo("just trains", None),
}
DISTRIBUTIONS = {"PIL": "pillow"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", default="photos", help="which demo (default: photos)"
    )
    parser.add_argument("--list", action="store_true", help="list the demos")
    parser.add_argument("--cured", action="store_true", help="run it with the planted cause put right")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON")
    parser.add_argument("--out", metavar="FOLDER", help="where the record goes; as for whyidle run")
    parser.add_argument("--lang", choices=("en", "zh"), help="language of the report (default: the locale)")


def main(arguments: argparse.Namespace) -> int:
    from whyidle.cli import main as cli
    from whyidle.cli.output import write

    if arguments.list:
        write(listing())
        return 0
    name = known(arguments.name)
    require("torch", *DEMOS[name].needs)
    script = copied(name)
    job = [sys.executable, str(script), *(["--cured"] if arguments.cured else [])]
    write(announcement(name, script, arguments.cured), sys.stderr)
    return cli.main(["run", *options_of(arguments), "--", *job])


def listing() -> str:
    width = max(map(len, DEMOS))
    lines = []
    for name, demo in DEMOS.items():
        lines.append(f"  {name:{width}}  {demo.story}")
        lines.append(f"  {'':{width}}  → {demo.cause or 'nothing to find'}")
    usage = ["", "whyidle demo NAME runs one; --cured runs it put right; the scripts lie in", f"{FOLDER}/"]
    return "\n".join([*lines, *usage, ""])


def known(asked: str) -> str:
    """The demo's name, however it was spelt.

    Raises:
        UsageError: there is none of that name.
    """
    from difflib import get_close_matches

    from whyidle.errors import UsageError

    name = asked.lower().replace("-", "_")
    if name in DEMOS:
        return name
    near = get_close_matches(name, DEMOS, n=1)
    raise UsageError(
        f"there is no demo {asked!r}" + (f"; did you mean {near[0]!r}?" if near else ""),
        "whyidle demo --list lists them",
    )


def require(*modules: str) -> None:
    """
    Raises:
        MissingHere: this interpreter lacks one of them.
    """
    from whyidle.errors import MissingHere

    missing = [DISTRIBUTIONS.get(module, module) for module in modules if find_spec(module) is None]
    if not missing:
        return
    # Whoever has torch has chosen its build: nothing may ask pip for another one.
    package = '"whyidle[demo]"' if "torch" in missing else " ".join(missing)
    raise MissingHere(
        f"the demo needs {' and '.join(missing)}, which {sys.executable} does not have",
        f"pip install {package}\nthe rest of whyidle works without it",
    )


def copied(name: str) -> Path:
    """A copy of the script outside the package: a job that lies within whyidle is none of the user's code."""
    from shutil import copy
    from tempfile import mkdtemp

    return Path(copy(FOLDER / f"{name}.py", mkdtemp(prefix="whyidle-demo-")))


def announcement(name: str, script: Path, is_cured: bool) -> str:
    demo = DEMOS[name]
    planted = f"planted: {demo.cause}" if demo.cause else "nothing is planted"
    state = f"{planted}, and put right" if is_cured and demo.cause else planted
    return f"whyidle: a training job that {demo.story} ({state})\n  {script}\n"


def options_of(arguments: argparse.Namespace) -> list[str]:
    """Those of `whyidle run`, passed on."""
    wanted = {"--json": arguments.json, "--out": arguments.out, "--lang": arguments.lang}
    return [word for option, value in wanted.items() if value is not None for word in (option, value)]
