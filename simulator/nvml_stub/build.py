"""Builds the NVML stub with whatever C compiler is there: python build.py FOLDER"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("nvml_stub.c")
LIBRARY = "libnvidia-ml.so.1"


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(folder: Path) -> Path:
    cc = compiler()
    if cc is None:
        raise FileNotFoundError("no C compiler (cc, gcc or clang) on PATH")
    library = folder / LIBRARY
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{LIBRARY}"]
    subprocess.run([cc, *options, "-o", str(library), str(SOURCE)], check=True)
    return library


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))  # noqa: T201
