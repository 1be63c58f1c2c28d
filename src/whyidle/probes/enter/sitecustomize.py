"""Found first on PYTHONPATH by every Python process of a job that `whyidle run` started.

Takes itself off sys.path, lets the sitecustomize it stands in front of run as always, then starts the
probes. Whatever goes wrong here, the job goes on without whyidle.
"""


def _chain(folder):  # type: ignore[no-untyped-def]
    import sys
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    sys.path[:] = [entry for entry in sys.path if entry != folder]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _enter(folder):  # type: ignore[no-untyped-def]
    import os
    import sys

    run_folder = os.environ.get("WHYIDLE_RUN_FOLDER")
    if not run_folder or sys.version_info < (3, 10):
        return
    try:
        package_folder = os.path.dirname(os.path.dirname(folder))
        if "whyidle" not in sys.modules:
            # By path, so that the job's interpreter need not have whyidle installed, and nothing
            # else that lies beside whyidle becomes importable in the job.
            from importlib.util import module_from_spec, spec_from_file_location

            spec = spec_from_file_location(
                "whyidle",
                os.path.join(package_folder, "__init__.py"),
                submodule_search_locations=[package_folder],
            )
            if spec is None or spec.loader is None:
                return
            module = module_from_spec(spec)
            sys.modules["whyidle"] = module
            spec.loader.exec_module(module)
        from whyidle.probes import bootstrap

        bootstrap.enter(run_folder)
    except Exception as error:
        try:
            with open(os.path.join(run_folder, "not-entered.txt"), "a") as log:
                log.write(f"{os.getpid()} {error!r}\n")
        except OSError:
            pass


def _main():  # type: ignore[no-untyped-def]
    import os
    import sys

    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        _chain(folder)
    finally:
        if sys.modules.get("sitecustomize") is not None:
            _enter(folder)


_main()
