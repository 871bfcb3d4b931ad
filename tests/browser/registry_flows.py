"""What users do on the pages of review queues, issues, MCP servers and skills. Each function works in
a visit on either server, and looks at the page after each step. `SWEEPS` has the pages on which
every button is pressed.
"""

import json
from collections.abc import Callable

from playwright.sync_api import Locator

from tests.browser.registry_data import EMPTY_QUEUE, NEW_SERVER, NEW_SKILL, OTHER_SKILL, QUEUE, SERVER
from tests.browser.visit import Visit

Step = Callable[[Visit], None]
_REVIEW = "mlflow.experiment-review-queue.focused-review"


def reviews(visit: Visit) -> None:
    """Flags two traces for review, answers the questions about them, and finds the answers in the
    traces.
    """
    page = visit.page
    experiment = visit.ids["experiment"]
    visit.open(f"experiments/{experiment}/traces")
    visit.look("traces", page.get_by_text("4 of 4 traces"))
    for row in (1, 2):
        page.get_by_role("checkbox").nth(row).check()
    visit.by_component("mlflow.traces-v4.actions.trigger").click()
    page.get_by_role("menuitem", name="Flag for review").click()
    option = page.get_by_role("option", name=EMPTY_QUEUE)
    visit.look("choice of queues", option)
    option.click()
    # The notification disappears after a few seconds, or when the list is closed.
    notification = page.get_by_text("Added 2 traces to review.")
    notification.wait_for()
    page.keyboard.press("Escape")
    notification.wait_for(state="hidden")
    visit.look("attached")

    visit.open(f"experiments/{experiment}/review-queue?selectedQueueId={visit.ids[EMPTY_QUEUE]}")
    start = visit.by_component("mlflow.experiment-review-queue.list.start-review")
    visit.look("queue", start)
    start.click()
    visit.look("first trace", page.get_by_text("0 of 2 reviewed (0%)"))
    _answer(visit, "Yes", ["botany", "chemistry"], "formal", "5", "Carpels.")
    visit.look("answers")
    visit.by_component(f"{_REVIEW}.complete").click()
    visit.look("second trace", page.get_by_text("1 of 2 reviewed (50%)"))
    _answer(visit, "No", ["chemistry"], "casual", "1", "Petals.")
    visit.by_component(f"{_REVIEW}.complete").click()
    visit.look("all reviewed", page.get_by_text("Completed (2)"))
    page.get_by_text("Needs review (0)").click()
    visit.look("nothing left", page.get_by_text("No traces match this filter."))

    for item, correct in (("item", "True"), ("other item", "False")):
        visit.open(f"experiments/{experiment}/traces")
        page.get_by_role("link", name=f"Open trace {visit.ids[item]} — output").click()
        drawer = page.get_by_role("dialog")
        visit.by_component("shared.model-trace-explorer.assessments-pane-toggle").click()
        drawer.get_by_text("Ideal answer").wait_for()
        # Shows the rationale.
        drawer.get_by_text(correct, exact=True).locator("xpath=preceding::button[1]").click()
        visit.look(f"answers about the {item}", drawer.get_by_text("Because of"))
        visit.by_component("mlflow.evaluations_review.modal.close").click()


def _answer(visit: Visit, correct: str, topics: list[str], tone: str, stars: str, ideal: str) -> None:
    """Answers all questions about a trace."""
    page = visit.page
    page.get_by_text(correct, exact=True).click()
    visit.by_component(f"{_REVIEW}.rationale").first.fill(f"Because of {ideal}")
    visit.by_component(f"{_REVIEW}.question.numeric").fill(stars)
    visit.by_component(f"{_REVIEW}.question.text").fill(ideal)
    page.get_by_role("combobox", name="Tone").click()
    page.get_by_role("option", name=tone).click()
    page.get_by_role("combobox", name="Topics").click()
    for topic in topics:
        page.get_by_role("option", name=topic).click()
    page.keyboard.press("Escape")


def issues(visit: Visit) -> None:
    """Searches, filters and sorts issues, reads the evidence of one, resolves one and reopens it,
    and rejects another one.
    """
    page = visit.page
    experiment = visit.ids["experiment"]
    rows = page.get_by_test_id("experiment-issue-row")
    visit.open(f"experiments/{experiment}/issues")
    visit.look("open issues", rows.nth(2))
    rows.filter(has_text="slow answers").click()
    visit.look("without evidence", page.get_by_text("No affected traces are recorded for this issue."))
    search = page.get_by_placeholder("Search issues by title")
    search.fill("source")
    rows.nth(1).wait_for(state="detached")
    visit.look("found")
    search.fill("")
    rows.nth(2).wait_for()

    visit.by_component("mlflow.experiment-issues.toolbar.sort.trigger").click()
    visit.look("orders", page.get_by_role("menu"))
    page.get_by_text("Last seen", exact=True).click()
    visit.look("last seen first")
    visit.by_component("mlflow.experiment-issues.toolbar.filter.trigger").click()
    visit.look("filters")
    page.keyboard.press("Escape")

    rows.filter(has_text="wrong tool").click()
    visit.look("with evidence", page.get_by_text("The tool of"))
    status = visit.by_component("mlflow.experiment-issues.detail.status")
    status.click()
    visit.look("choice of states", page.get_by_role("menuitem", name="Mark resolved"))
    page.get_by_role("menuitem", name="Mark resolved").click()
    rows.nth(2).wait_for(state="detached")
    visit.look("resolved")
    visit.by_component("mlflow.experiment-issues.toolbar.chip.status.pending.close").click()
    visit.look("all", rows.nth(2))
    rows.filter(has_text="wrong tool").click()
    status.click()
    page.get_by_role("menuitem", name="Reopen").click()
    visit.look("reopened", status.filter(has_text="Open"))
    rows.filter(has_text="made-up source").click()
    status.click()
    page.get_by_role("menuitem", name="Not an issue").click()
    visit.look("rejected", status.filter(has_text="Not an issue"))


def servers(visit: Visit) -> None:
    """Registers an MCP server with two versions, compares them, sets an alias and adds an access
    endpoint.
    """
    page = visit.page
    dialog = page.get_by_role("dialog")
    visit.open("mcp-registry")
    visit.look("list", page.get_by_text(SERVER).first)
    visit.by_component("mlflow.mcp_registry.create_server_button").click()
    visit.look("form", dialog)
    _server_form(visit, dialog, "1.0.0")
    dialog.get_by_role("button", name="Create", exact=True).click()
    dialog.wait_for(state="detached")
    visit.look("registered", page.get_by_text("Viewing version 1.0.0"))

    visit.by_component("mlflow.mcp_registry.detail.create_version").click()
    _server_form(visit, dialog, "2.0.0")
    dialog.get_by_role("button", name="Create", exact=True).click()
    dialog.wait_for(state="detached")
    visit.look("second version", page.get_by_text("Viewing version 2.0.0"))
    page.get_by_text("Compare", exact=True).click()
    visit.look("compared", page.get_by_text("Comparing version"))
    visit.by_component("mlflow.mcp_registry.compare.switch_sides").click()
    visit.look("compared the other way round", page.get_by_text("Comparing version"))
    page.get_by_text("Preview", exact=True).click()
    visit.look("preview again", page.get_by_text("Viewing version"))

    _set_alias(visit, "mlflow.mcp_registry.edit_aliases")
    visit.by_component("mlflow.mcp_registry.detail.add_endpoint").click()
    visit.by_component("mlflow.mcp_registry.endpoint_modal.endpoint").fill("https://mcp.example.com/by-hand")
    visit.by_component("mlflow.mcp_registry.endpoint_modal.target").click()
    visit.look("targets of an endpoint", page.get_by_role("option", name="newest"))
    page.get_by_role("option", name="newest").click()
    dialog.get_by_role("button", name="Create", exact=True).click()
    dialog.wait_for(state="detached")
    visit.look("with an endpoint", page.get_by_text("https://mcp.example.com/by-hand"))
    page.get_by_role("tab", name="Tools").click()
    visit.look("tools", page.get_by_text("No tools registered for this version."))

    visit.open("mcp-registry")
    page.get_by_placeholder("Search MCP servers by name").fill("hand")
    page.get_by_text(SERVER).first.wait_for(state="detached")
    visit.look("found", page.get_by_text(NEW_SERVER).first)


def _server_form(visit: Visit, dialog: Locator, version: str) -> None:
    """Fills in the form of an MCP server, or of one of its versions."""
    server = {
        "name": NEW_SERVER,
        "version": version,
        "description": f"Version {version}.",
        "remotes": [{"type": "streamable-http", "url": f"https://mcp.example.com/{version}"}],
    }
    # The editor has content already if the server has a version.
    dialog.get_by_role("textbox", name="server.json editor").focus()
    visit.page.keyboard.press("ControlOrMeta+A")
    visit.page.keyboard.insert_text(json.dumps(server))
    # The editor may have closed brackets that the text closes.
    visit.page.keyboard.press("ControlOrMeta+Shift+End")
    visit.page.keyboard.press("Delete")
    visit.by_component("mlflow.mcp_registry.create.status").click()
    visit.page.get_by_role("option", name="Active").click()


def _set_alias(visit: Visit, button: str) -> None:
    """Sets the alias `newest` of the version in view."""
    page = visit.page
    visit.by_component(button).click()
    visit.look("aliases", page.get_by_role("dialog"))
    page.get_by_role("dialog").get_by_role("combobox").fill("newest")
    page.keyboard.press("Enter")
    visit.by_component("mlflow.edit-aliases-modal.save-button").click()
    page.get_by_role("dialog").wait_for(state="detached")
    visit.look("with an alias", page.get_by_text("newest").first)


def new_skill(visit: Visit) -> None:
    """Registers a skill."""
    page = visit.page
    visit.open("skills")
    visit.look("list", page.get_by_text(OTHER_SKILL, exact=True))
    visit.by_component("mlflow.skill_registry.create").click()
    _skill_form(visit, "v1")
    visit.by_component("mlflow.skill_registry.register_modal.name").fill(NEW_SKILL)
    visit.look("form")
    visit.by_component("mlflow.skill_registry.register_modal.submit").click()
    page.get_by_role("dialog").wait_for(state="detached")
    visit.look("registered", page.get_by_text("Viewing version 1"))


def skills(visit: Visit) -> None:
    """Registers a skill with two versions, sees both of them, sets an alias and a status, and reads
    the files of an uploaded skill.
    """
    page = visit.page
    new_skill(visit)
    visit.by_component("mlflow.skill_registry.create_version").click()
    _skill_form(visit, "v2")
    visit.look("form of a version")
    visit.by_component("mlflow.skill_registry.register_modal.submit").click()
    page.get_by_role("dialog").wait_for(state="detached")
    visit.look("second version", page.get_by_text("Viewing version 2"))
    _set_alias(visit, "mlflow.skill_registry.detail.version.aliases.edit")
    page.get_by_text("Version 1", exact=True).click()
    visit.look("first version", page.get_by_text("Viewing version 1"))
    visit.by_component("mlflow.skill_registry.detail.version.status_edit").click()
    page.get_by_role("option", name="Deprecated").click()
    visit.look("deprecated", page.get_by_text("Deprecated").first)

    visit.open(f"skills/{OTHER_SKILL}")
    page.get_by_text("run.py").click()
    visit.look("files of a skill", page.get_by_text("print("))


def _skill_form(visit: Visit, ref: str) -> None:
    """Fills in the form of a skill, or of one of its versions."""
    visit.by_component("mlflow.skill_registry.register_modal.location").fill(f"https://github.com/acme/skills/tree/{ref}/by-hand")


#: By name: the page whose data is created, and the flow. The first one is short, for `make test`.
FLOWS: dict[str, tuple[str, Step]] = {
    "new skill": ("skills", new_skill),
    "skills": ("skills", skills),
    "mcp servers": ("mcp servers", servers),
    "issues": ("issues", issues),
    "reviews": ("reviews", reviews),
}

#: By page and name: the address of what is swept, and a text on it.
SWEEPS: dict[str, dict[str, tuple[Callable[[dict[str, str]], str], str]]] = {
    "reviews": {
        "review queues": (lambda ids: f"experiments/{ids['experiment']}/review-queue?selectedQueueId={ids[QUEUE]}", "Start review"),
        "review": (
            lambda ids: f"experiments/{ids['experiment']}/review-queue?selectedQueueId={ids[QUEUE]}&selectedItemId={ids['item']}",
            "Exit review",
        ),
    },
    "issues": {"issues": (lambda ids: f"experiments/{ids['experiment']}/issues", "Evidence")},
    "mcp servers": {
        "list of MCP servers": (lambda ids: "mcp-registry", SERVER),
        "MCP server": (lambda ids: f"mcp-registry/{SERVER.replace('/', '%2F')}", "Viewing version"),
    },
    "skills": {
        "list of skills": (lambda ids: "skills", OTHER_SKILL),
        "skill": (lambda ids: "skills/@acme/review", "Viewing version"),
        "uploaded skill": (lambda ids: f"skills/{OTHER_SKILL}", "run.py"),
    },
}
