"""Interactions by clicks. Each flow uses entities that it creates itself, or restores the original
state.
"""

from collections.abc import Callable

from playwright.sync_api import Locator

from tests.browser.names import MANY_RUNS, MODEL, SOME_RUNS
from tests.browser.visit import Visit
from tests.webhooks.receiver import receiving

Step = Callable[[Visit], None]
_RUNS = "codegen_mlflow_app_src_experiment-tracking_components_experiment-page_components_runs_"
_SECRET = "a secret made by hand"


def experiments(visit: Visit) -> None:
    """Creates an experiment, finds, renames, describes, tags and deletes it. The UI cannot restore
    experiments.
    """
    page = visit.page
    visit.open("experiments")
    visit.by_component("mlflow.experiment_list_view.new_experiment_button").click()
    page.get_by_placeholder("Input an experiment name").fill("made by hand")
    visit.look("form")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    visit.look("created", page.get_by_role("link", name="made by hand"))

    page.get_by_test_id("overflow-menu-trigger").click()
    page.get_by_test_id("mlflow.experiment_page.managementMenu.edit-experiment").click()
    visit.by_component("mlflow.experiment.edit.name").fill("renamed by hand")
    page.get_by_test_id("text-area").fill("Made **by hand**.")
    visit.by_component("mlflow.experiment.metadata_editor.modal.footer.ok").click()
    visit.look("renamed", page.get_by_role("link", name="renamed by hand"))

    visit.open("experiments")
    page.get_by_test_id("search-experiment-input").fill("renamed")
    page.keyboard.press("Enter")
    row = page.get_by_test_id("experiment-list-item-link").filter(has_text="renamed by hand")
    visit.look("found", row)
    visit.by_component("mlflow.experiment_list_view.check_box").click()
    page.get_by_test_id("delete-experiments-button").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    row.wait_for(state="detached")
    visit.look("deleted")


def run_list(visit: Visit) -> None:
    """Filters and sorts runs, and shows the deleted ones."""
    page = visit.page
    visit.open(f"experiments/{visit.ids['some']}/runs")
    _run(visit, f"run {SOME_RUNS - 1:03}").wait_for()
    page.get_by_test_id("search-box").fill("metrics.score > 3 and tags.kind = 'even'")
    page.keyboard.press("Enter")
    visit.look("filtered", page.get_by_text("4 matching runs").or_(page.locator("b", has_text="4")))
    page.get_by_test_id("search-box").fill("metrics.score >")
    page.keyboard.press("Enter")
    visit.look("bad filter")
    page.get_by_test_id("clear-button").click()
    visit.look("no filter")

    _order_by(visit, "score", ascending=False)
    visit.look("best first")
    _order_by(visit, "score", ascending=True)
    visit.look("worst first")

    page.get_by_test_id("lifecycle-filter").click()
    page.get_by_test_id("deleted-runs-menu-item").click()
    visit.look("deleted")
    page.get_by_test_id("lifecycle-filter").click()
    page.get_by_test_id("active-runs-menu-item").click()
    visit.look("active")


def more_runs(visit: Visit) -> None:
    """Loads the runs beyond the first 100."""
    page = visit.page
    visit.open(f"experiments/{visit.ids['many']}/runs?orderByKey=attributes.start_time&orderByAsc=true")
    _run(visit, "run 000").wait_for()
    visit.look("first page")
    # The button is below the last row, which the grid only renders after scrolling to it.
    for _ in range(20):
        if page.get_by_role("button", name="Load more").count():
            break
        page.locator(".ag-body-viewport").first.evaluate("grid => grid.scrollBy(0, 2000)")
        page.wait_for_timeout(100)
    page.get_by_role("button", name="Load more").click()
    page.get_by_text(str(MANY_RUNS), exact=True).first.wait_for()
    visit.look("all")


def grouping(visit: Visit) -> None:
    page = visit.page
    visit.open(f"experiments/{visit.ids['some']}/runs")
    _run(visit, f"run {SOME_RUNS - 1:03}").wait_for()
    visit.by_component(f"{_RUNS}experimentviewrunsgroupbyselector.tsx_306").click()
    page.get_by_role("menuitemcheckbox", name="layers", exact=True).or_(page.get_by_text("layers", exact=True)).last.click()
    page.keyboard.press("Escape")
    visit.look("by a param", page.get_by_text("layers:").or_(page.get_by_text("layers")).first)


def columns(visit: Visit) -> None:
    page = visit.page
    visit.open(f"experiments/{visit.ids['curves']}/runs")
    _run(visit, "curve 2").wait_for()
    visit.by_component(f"{_RUNS}experimentviewrunscolumnselector.tsx_315").click()
    page.get_by_placeholder("Search columns").fill("loss")
    visit.look("search")
    page.locator(".ant-tree-checkbox, [class*=tree-checkbox]").last.click()
    page.keyboard.press("Escape")
    visit.look("with loss")


def run_life(visit: Visit) -> None:
    """Renames, describes, tags, deletes and restores a run."""
    page = visit.page
    experiment = visit.ids["nested"]
    visit.open(f"experiments/{experiment}/runs/{visit.ids['alone']}")
    page.get_by_test_id("overflow-menu-trigger").click()
    page.get_by_test_id("overflow-rename-button").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("renamed by hand")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    visit.look("renamed", page.get_by_role("heading", name="renamed by hand").or_(page.get_by_text("renamed by hand")))
    visit.by_component("mlflow.run_details.overview.tags.edit_button").or_(page.get_by_role("button", name="Add tags")).first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox").first.fill("colour")
    page.keyboard.press("Enter")
    dialog.get_by_placeholder("Type a value").fill("green")
    dialog.get_by_role("button", name="Add tag").click()
    dialog.get_by_role("button", name="Save tags").click()
    dialog.wait_for(state="detached")
    visit.look("tagged", page.get_by_text("colour"))

    page.get_by_test_id("overflow-menu-trigger").click()
    page.get_by_test_id("overflow-delete-button").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").wait_for(state="detached")
    visit.open(f"experiments/{experiment}/runs?lifecycleFilter=Deleted")
    visit.look("deleted", _run(visit, "renamed by hand"))
    _check(visit, "renamed by hand")
    page.get_by_test_id("runs-restore-button").click()
    page.get_by_role("button", name="Restore").last.click()
    _run(visit, "renamed by hand").wait_for(state="detached")
    visit.open(f"experiments/{experiment}/runs?lifecycleFilter=Active")
    visit.look("restored", _run(visit, "renamed by hand"))


def artifacts(visit: Visit) -> None:
    """Opens each file of a run, directory by directory."""
    page = visit.page
    visit.open(f"experiments/{visit.ids['artifacts']}/runs/{visit.ids['with artifacts']}/artifacts")
    tree = page.get_by_test_id("artifact-tree-node")
    visit.look("files", tree)
    for folder in ("files", "notes", "plots"):
        tree.filter(has_text=folder).first.click()
    for name in ("picture.png", "figure.png", "table.json", "text.txt", "readme.md", "page.html", "settings.json", "numbers.csv",
                 "unknown.bin"):
        tree.filter(has_text=name).first.click()
        if name.endswith(".png"):
            page.locator("img[src^='blob:'], .plotly image").first.wait_for()
        if name.endswith(".csv"):
            # The header of a table is rendered after its body has been measured.
            page.get_by_text("value", exact=True).first.wait_for()
        visit.look(name, page.get_by_text(f"/{name}"))


def model_artifacts(visit: Visit) -> None:
    """Opens the files of a logged model, and the schema in one of them."""
    page = visit.page
    visit.open(f"experiments/{visit.ids['training']}/models/{visit.ids['logged model']}/artifacts")
    tree = page.get_by_test_id("artifact-tree-node")
    visit.look("files", tree)
    for name in ("MLmodel", "requirements.txt", "input_example.json"):
        tree.filter(has_text=name).first.click()
        visit.look(name, page.get_by_text(f"/{name}"))


def _look_at_runs(visit: Visit, until: str, lost: str) -> None:
    """Looks at a comparison. MLflow's page only keeps the runs of the most recent response. On a
    busy server, a late response for the previous page removes the compared runs. Reloading the page
    brings them back.
    """
    lines = visit.look("compared", visit.page.get_by_text(until))
    if lost in lines:
        visit.page.reload()
        visit.look("compared", visit.page.get_by_text(until))


def compare(visit: Visit) -> None:
    """Selects runs in the list and compares them."""
    page = visit.page
    visit.open(f"experiments/{visit.ids['curves']}/runs")
    for number in range(3):
        _check(visit, f"curve {number}")
    page.get_by_test_id("runs-compare-button").click()
    _look_at_runs(visit, "Comparing 3 Runs from 1 Experiment", "Comparing 0 Runs from 1 Experiment")
    for tab in ("Scatter Plot", "Box Plot", "Contour Plot"):
        page.get_by_role("tab", name=tab).click()
        visit.look(tab)


def model_version(visit: Visit) -> None:
    """Edits the aliases, tags, description and, in the older view, the stage of a version."""
    page = visit.page
    visit.open(f"models/{MODEL}/versions/3")
    page.get_by_role("button", name="Edit aliases").first.click()
    visit.look("aliases", page.get_by_role("dialog"))
    page.get_by_role("dialog").get_by_role("combobox").fill("newest")
    page.keyboard.press("Enter")
    visit.by_component("mlflow.edit-aliases-modal.save-button").click()
    visit.look("with an alias", page.get_by_text("newest"))

    page.get_by_text("Tags", exact=True).click()
    page.get_by_test_id("tags-form-input-name").fill("tested")
    page.get_by_test_id("tags-form-input-value").fill("by hand")
    page.get_by_test_id("add-tag-button").click()
    visit.look("with a tag", page.get_by_role("cell", name="tested").or_(page.get_by_text("tested")))
    page.get_by_test_id("descriptionEditButton").click()
    page.get_by_test_id("text-area").fill("The *third* one.")
    page.get_by_role("button", name="Save").click()
    visit.look("described", page.get_by_text("third"))

    page.get_by_role("switch").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    visit.look("older view", page.get_by_text("Stage:").or_(page.get_by_text("Stage")))
    page.get_by_text("None", exact=True).first.click()
    page.locator("[role=menuitem]", has_text="Staging").click()
    visit.look("stage", page.get_by_role("dialog"))
    page.get_by_role("dialog").get_by_role("button").last.click()
    page.get_by_role("dialog").wait_for(state="detached")
    visit.look("staged", page.get_by_text("Staging", exact=True))
    page.get_by_role("switch").click()
    visit.look("newer view", page.get_by_text("newest"))


def compare_versions(visit: Visit) -> None:
    """Selects versions of a model and compares them."""
    page = visit.page
    visit.open(f"models/{MODEL}")
    for version in ("Version 3", "Version 1"):
        page.get_by_role("row").filter(has_text=version).get_by_role("checkbox").check()
    page.get_by_test_id("compareButton").click()
    _look_at_runs(visit, "Comparing 2 Versions", "Invalid Run")


def models(visit: Visit) -> None:
    """Creates a model, finds and describes it, registers a version of it from a run, and deletes
    it.
    """
    page = visit.page
    visit.open("models")
    # The registry's announcement is shown once.
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.get_by_test_id("create-model-button").click()
    dialog = page.get_by_role("dialog").filter(has_text="Create Model")
    dialog.get_by_role("textbox").first.fill("made by hand")
    visit.look("form")
    dialog.get_by_role("button", name="Create").click()
    visit.look("created", page.get_by_test_id("descriptionEditButton"))
    page.get_by_test_id("descriptionEditButton").click()
    page.get_by_test_id("text-area").fill("Made **by hand**.")
    page.get_by_role("button", name="Save").click()
    visit.look("described", page.locator("strong", has_text="by hand"))

    visit.open(f"experiments/{visit.ids['artifacts']}/runs/{visit.ids['with artifacts']}")
    page.get_by_role("button", name="Register model").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox").click()
    page.locator("[class*=select-item-option-content]", has_text="made by hand").click()
    dialog.get_by_role("button", name="Register").click()
    dialog.wait_for(state="detached")
    visit.look("registered", page.get_by_text("made by hand"))

    visit.open("models")
    page.get_by_test_id("model-search-input").fill("hand")
    page.keyboard.press("Enter")
    page.get_by_role("link", name=MODEL).wait_for(state="detached")
    visit.look("found", page.get_by_role("link", name="made by hand"))
    page.get_by_role("link", name="made by hand").click()
    page.get_by_test_id("overflow-menu-trigger").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").wait_for(state="detached")
    visit.look("deleted", page.get_by_role("link", name=MODEL))


def prompts(visit: Visit) -> None:
    """Creates a prompt with two versions, and compares them."""
    page = visit.page
    visit.open("prompts")
    visit.look("list", page.get_by_role("link", name="greeting"))
    page.get_by_test_id("create-prompt-button").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").first.fill("made-by-hand")
    dialog.locator("textarea").first.fill("Say {{word}}.")
    dialog.get_by_role("button", name="Create").click()
    visit.look("created", page.get_by_text("Say {{word}}."))
    visit.by_component("mlflow.prompts.details.create").click()
    dialog.locator("textarea").first.fill("Shout {{word}}!")
    dialog.get_by_role("button", name="Create").click()
    visit.look("second version", page.get_by_text("Shout {{word}}!"))
    page.get_by_text("Compare", exact=True).click()
    visit.look("compared", page.get_by_text("Comparing"))


def evaluation_datasets(visit: Visit) -> None:
    """Opens a dataset, and creates one."""
    page = visit.page
    visit.open(f"experiments/{visit.ids['evaluation']}/datasets")
    visit.look("list", page.get_by_role("link", name="questions"))
    page.get_by_role("link", name="questions").click()
    visit.look("records", page.get_by_text("What is 2?"))
    visit.open(f"experiments/{visit.ids['evaluation']}/datasets")
    visit.by_component("mlflow.eval-datasets-v2.create-dataset.button").click()
    visit.look("form", page.get_by_role("dialog"))
    page.get_by_role("dialog").get_by_role("textbox").first.fill("made by hand")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    page.get_by_role("dialog").wait_for(state="detached")
    page.reload()
    visit.look("created", page.get_by_role("link", name="made by hand"))


def settings(visit: Visit) -> None:
    """Switches to dark mode and back."""
    page = visit.page
    visit.open("settings")
    switch = page.locator('[data-component-id="mlflow.settings.theme.toggle-switch"] [role=switch]').or_(page.get_by_role("switch")).first
    visit.look("light", switch)
    switch.click()
    page.locator("body.dark-mode").wait_for()
    visit.look("dark")
    visit.open(f"experiments/{visit.ids['some']}/runs")
    visit.look("dark runs", _run(visit, f"run {SOME_RUNS - 1:03}"))
    visit.open("settings")
    switch.click()
    page.locator("body:not(.dark-mode)").wait_for()
    visit.look("light again")


def webhooks(visit: Visit) -> None:
    """Creates a webhook with a secret on the page of the settings, tests it with a receiver that
    accepts and one that fails, edits, disables and deletes it.
    """
    page = visit.page
    dialog = page.get_by_role("dialog")

    def button(name: str) -> Locator:
        return visit.by_component(f"mlflow.settings.webhooks.{name}-button")

    def fill(name: str, value: str) -> None:
        page.locator(f'[id="mlflow.settings.webhooks.{name}-input"]').fill(value)

    def confirm(name: str) -> None:
        dialog.get_by_role("button", name=name).click()
        dialog.wait_for(state="detached")

    def test(name: str) -> None:
        button("test").click()
        result = visit.by_component("mlflow.settings.webhooks.test-result-alert")
        visit.look(name, result)
        result.get_by_role("button").click()
        result.wait_for(state="detached")

    visit.open("settings")
    page.get_by_role("link", name="Webhooks", exact=True).click()
    visit.look("none", page.get_by_text("No webhooks configured"))
    button("create").click()
    dialog.get_by_role("button", name="Create").click()
    visit.look("required fields", dialog.get_by_text("Name is required"))
    confirm("Cancel")

    with receiving() as receiver:
        button("create").click()
        fill("name", "made-by-hand")
        fill("url", f"{receiver.url}/first")
        fill("description", "Made by hand.")
        fill("secret", _SECRET)
        dialog.get_by_text("Registered model created", exact=True).click()
        dialog.get_by_text("Prompt alias deleted", exact=True).click()
        visit.look("form")
        confirm("Create")
        visit.look("created", page.get_by_text("made-by-hand"))
        test("accepted")
        receiver.answer = lambda _: (503, [], b"")
        test("failed")

        button("edit").click()
        visit.look("form with values", dialog)
        fill("name", "edited-by-hand")
        fill("url", f"{receiver.url}/second")
        dialog.get_by_text("Model version tag set", exact=True).click()
        confirm("Save")
        visit.look("edited", page.get_by_text("edited-by-hand"))
        button("edit").click()
        dialog.get_by_role("switch").click()
        confirm("Save")
        visit.look("disabled", page.get_by_text("Disabled", exact=True))
        receiver.answer = lambda _: (200, [], b"")
        test("accepted although disabled")
        deliveries = receiver.deliveries()

    # Saving without a secret keeps the former one.
    assert [delivery.path for delivery in deliveries] == ["/first", "/first", "/second"]
    assert all(delivery.is_signed_with(_SECRET) for delivery in deliveries)
    button("delete").click()
    visit.look("confirmation", dialog)
    confirm("Cancel")
    button("delete").click()
    confirm("Delete")
    visit.look("deleted", page.get_by_text("No webhooks configured"))


def _run(visit: Visit, name: str):
    return visit.page.locator(".ag-row").get_by_role("link", name=name, exact=True)


def _check(visit: Visit, run: str) -> None:
    _run(visit, run).wait_for()
    visit.page.locator(".ag-row", has=visit.page.get_by_role("link", name=run, exact=True)).get_by_role(
        "checkbox", name="Press Space"
    ).first.check()


def _order_by(visit: Visit, column: str, ascending: bool) -> None:
    page = visit.page
    # Each choice closes the menu.
    for choice in (f"sort-select-{column}", "sort-select-asc" if ascending else "sort-select-desc"):
        page.get_by_test_id("sort-select-dropdown").click()
        page.get_by_test_id(choice).click()
        page.get_by_test_id(choice).wait_for(state="detached")


FLOWS: dict[str, Step] = {
    "create, rename, delete an experiment": experiments,
    "filter and order runs": run_list,
    "load more runs": more_runs,
    "group runs": grouping,
    "choose columns": columns,
    "rename, tag, delete, restore a run": run_life,
    "artifacts of a run": artifacts,
    "artifacts of a model": model_artifacts,
    "choose runs and compare them": compare,
    "edit a model version": model_version,
    "compare versions of a model": compare_versions,
    "create, register, delete a model": models,
    "write prompts": prompts,
    "create a dataset": evaluation_datasets,
    "dark mode": settings,
    "create, test, edit, delete a webhook": webhooks,
}
