"""Prometheus metrics of a sidecar. `Metrics` collects and renders them; `definitions.METRICS` lists them."""

from pgtrickle.interfaces.metrics.metrics import CONTENT_TYPE, Metrics

__all__ = ["CONTENT_TYPE", "Metrics"]
