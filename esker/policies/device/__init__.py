"""Populations of policies on a torch device: one row per member, one batched product per layer."""

from __future__ import annotations

from esker.policies.device.rows import DeviceRows, open_rows

__all__ = ["DeviceRows", "open_rows"]
