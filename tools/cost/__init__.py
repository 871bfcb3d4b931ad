"""Generates `docs/reference/cost.md`: the cost of calls, teams and an idle stack."""
