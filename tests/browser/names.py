"""What the data has and the pages are asked for."""

#: More than the 100 that the run list shows at first.
MANY_RUNS = 130
STEPS = 1000
MODEL = "iris classifier"
