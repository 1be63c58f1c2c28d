"""What whyidle costs, measured: `python -m benchmarks.overhead`, `python -m benchmarks.startup`."""
