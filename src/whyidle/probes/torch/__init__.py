"""Probes of a PyTorch job. Each is attached when the torch module it watches has been imported."""
