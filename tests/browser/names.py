"""What the data has and the pages are asked for."""

#: More than the 100 that the run list shows at first.
MANY_RUNS = 130
#: As few as a list needs to be filtered, ordered and grouped: the grid draws each look at a page of 100 for seconds of a core.
SOME_RUNS = 12
STEPS = 1000
MODEL = "iris classifier"
#: What the agent was asked, the one that was too hard, and the conversation that has the first three.
QUESTIONS = [f"What is in the middle of flower {number}?" for number in range(5)]
HARD = 3
SESSION = "first session"

#: The parts of the data.
PARTS = ("training", "artifacts", "nested", "curves", "some", "many", "prompts", "evaluation", "traces")
#: The steps of `make test`, with the part that they show: one with a document. A newcomer sees lists
#: and charts.
SAMPLE = {"trace": "traces"}
