"""Generates `docs/reference/cost.md`, the cost of calls, teams and an idle stack, and the last section of `docs/measured/scale.md`."""
