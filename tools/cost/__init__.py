"""Writes `docs/reference/cost.md`: what calls, teams and an idle stack cost."""
