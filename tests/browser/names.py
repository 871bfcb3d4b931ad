"""Names and sizes of the data that the pages show."""

#: Number of runs, more than the 100 that the list shows at first.
MANY_RUNS = 130
#: Number of runs for filtering, sorting and grouping. It is small, because the grid takes seconds
#: of CPU time to render a page of 100 runs.
SOME_RUNS = 12
STEPS = 1000
MODEL = "iris classifier"
#: The agent's questions, the index of the one that fails, and the conversation with the first
#: three.
QUESTIONS = [f"What is in the middle of flower {number}?" for number in range(5)]
HARD = 3
SESSION = "first session"

#: The parts of the data.
PARTS = ("training", "artifacts", "nested", "curves", "some", "many", "prompts", "evaluation", "traces")
#: The steps of `make test`, with the parts of the data that each shows: a page with a document, and
#: a page that sends requests through the server. Lists and charts are tested with the newcomer's
#: visit.
SAMPLE: dict[str, tuple[str, ...]] = {"trace": ("traces",), "create, test, edit, delete a webhook": ()}
