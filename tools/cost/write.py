from pathlib import Path

from tools.cost import stack
from tools.cost.capacity import Row, rows
from tools.cost.model import Model
from tools.cost.page import page

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs/reference/cost.md"


def read() -> tuple[Model, list[Row]]:
    return Model(stack.read(REPOSITORY / "template.yaml")), rows(REPOSITORY / "docs/reference")


def written() -> str:
    """Generates the page from the current content of the repository."""
    return page(*read())
