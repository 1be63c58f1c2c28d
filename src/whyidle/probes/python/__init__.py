"""Probes of the Python side of a job: what its main thread does that is no tensor work."""
