"""Tests of the model registry and of prompts."""

import json
from concurrent.futures import ThreadPoolExecutor

import mlflow
import mlflow.sklearn
import pytest
import requests
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from sklearn.linear_model import LogisticRegression

from tests.support.servers import ServerlessMlflow

from .pages import pages


@pytest.fixture
def source(client: MlflowClient, run_id: str) -> str:
    """Returns the location of a model in the run's artifacts."""
    return f"{client.get_run(run_id).info.artifact_uri}/model"


@pytest.fixture
def model(client: MlflowClient, request: pytest.FixtureRequest, run_id: str, source: str) -> str:
    """Creates a registered model with three versions, all from the run. Returns its name."""
    name = request.node.name
    client.create_registered_model(name, tags={"team": "red"}, description="about it")
    for _ in range(3):
        client.create_model_version(name, source, run_id, tags={"k": "v"})
    return name


def test_register_from_a_run(client: MlflowClient, run_id: str, source: str):
    client.create_registered_model("registered")
    first = client.create_model_version("registered", f"{source}/first", run_id)
    second = client.create_model_version("registered", source, run_id, tags={"k": "v"})
    assert (first.version, second.version) == ("1", "2")
    assert first.run_id == run_id
    assert client.get_model_version_download_uri("registered", "1") == f"{source}/first"
    assert client.get_model_version_download_uri("registered", "2") == source
    found = client.get_registered_model("registered")
    assert [version.version for version in found.latest_versions] == ["2"]
    assert found.latest_versions[0].tags == {"k": "v"}


def test_a_copy_of_a_version(client: MlflowClient, model: str, run_id: str, source: str):
    copied = client.copy_model_version(f"models:/{model}/2", "copy of it")
    assert (copied.name, copied.version, copied.run_id) == ("copy of it", "1", run_id)
    assert copied.source == f"models:/{model}/2"
    assert client.get_model_version_download_uri("copy of it", "1") == source


def test_a_source_that_is_not_the_runs(client: MlflowClient, model: str, run_id: str, source: str):
    for uri in ["/etc/passwd", f"{source}/../../../other", "mlflow-artifacts:/x"]:
        with pytest.raises(MlflowException, match="Invalid model version source"):
            client.create_model_version(model, uri, run_id)
    assert len(client.search_model_versions(f"name = '{model}'")) == 3


def test_a_source_elsewhere_is_recorded(client: MlflowClient):
    client.create_registered_model("elsewhere")
    recorded = client.create_model_version("elsewhere", "s3://somewhere/else")
    assert (recorded.source, client.get_model_version_download_uri("elsewhere", "1")) == ("s3://somewhere/else",) * 2
    client.delete_registered_model("elsewhere")


def test_stages(client: MlflowClient, model: str):
    client.transition_model_version_stage(model, "1", "Staging")
    client.transition_model_version_stage(model, "2", "Production")
    moved = client.transition_model_version_stage(model, "3", "Production", archive_existing_versions=True)
    assert moved.current_stage == "Production"
    latest = {version.current_stage: version.version for version in client.get_latest_versions(model)}
    assert latest == {"Staging": "1", "Archived": "2", "Production": "3"}


def test_aliases(client: MlflowClient, model: str):
    client.set_registered_model_alias(model, "champion", "1")
    client.set_registered_model_alias(model, "champion", "2")
    client.set_registered_model_alias(model, "challenger", "2")
    found = client.get_model_version_by_alias(model, "champion")
    assert (found.version, sorted(found.aliases)) == ("2", ["challenger", "champion"])
    assert client.get_registered_model(model).aliases == {"champion": "2", "challenger": "2"}
    client.delete_registered_model_alias(model, "champion")
    with pytest.raises(MlflowException, match="champion not found"):
        client.get_model_version_by_alias(model, "champion")
    client.delete_model_version(model, "2")
    assert client.get_registered_model(model).aliases == {}
    assert client.get_model_version_by_alias(model, "latest").version == "3"


def test_tags_and_descriptions(client: MlflowClient, model: str):
    client.set_registered_model_tag(model, "note", "x" * 50_000)
    client.set_model_version_tag(model, "1", "note", "y" * 50_000)
    client.delete_registered_model_tag(model, "team")
    client.delete_model_version_tag(model, "1", "k")
    client.update_registered_model(model, "new")
    client.update_model_version(model, "1", "newer")
    found, version = client.get_registered_model(model), client.get_model_version(model, "1")
    assert (found.tags, found.description) == ({"note": "x" * 50_000}, "new")
    assert (version.tags, version.description) == ({"note": "y" * 50_000}, "newer")


def test_rename_and_delete(client: MlflowClient, model: str, run_id: str):
    client.set_registered_model_alias(model, "champion", "1")
    client.rename_registered_model(model, "new name")
    assert client.get_registered_model("new name").description == "about it"
    with pytest.raises(MlflowException, match="not found"):
        client.get_registered_model(model)
    assert client.get_model_version_by_alias("new name", "champion").version == "1"
    found = client.search_model_versions(f"run_id = '{run_id}'", order_by=["version_number"])
    assert [(version.name, version.version) for version in found] == [("new name", str(n)) for n in (1, 2, 3)]
    client.create_registered_model(model)
    assert client.get_registered_model(model).latest_versions == []
    client.delete_registered_model("new name")
    assert list(client.search_model_versions(f"run_id = '{run_id}'")) == []
    assert [found.name for found in client.search_registered_models(f"name = '{model}'")] == [model]


def test_search(client: MlflowClient):
    for number in range(25):
        client.create_registered_model(f"search {number:02}", tags={"even": str(number % 2 == 0)})
    even = "tags.even = 'True'"
    found = pages(lambda token: client.search_registered_models(even, max_results=5, page_token=token))
    names = [model.name for page in found for model in page]
    assert names == [f"search {number:02}" for number in range(0, 25, 2)]
    page = client.search_registered_models("name LIKE 'search 1%'", order_by=["name DESC"])
    assert [found.name for found in page] == [f"search {number}" for number in range(19, 9, -1)]


def test_versions_at_once(client: MlflowClient, source: str, run_id: str):
    client.create_registered_model("at once")
    with ThreadPoolExecutor(16) as threads:
        made = threads.map(lambda _: client.create_model_version("at once", source, run_id).version, range(16))
        assert sorted(map(int, made)) == list(range(1, 17))


def test_prompts(client: MlflowClient, model: str):
    first = mlflow.genai.register_prompt("greeting", "Hello {{name}}", commit_message="first", tags={"author": "ada"})
    text = "Good day, {{name}}. " * 2_000
    second = mlflow.genai.register_prompt("greeting", text)
    chat = [{"role": "user", "content": "{{question}}"}]
    mlflow.genai.register_prompt("chat", chat)
    assert (first.version, second.version) == (1, 2)
    assert mlflow.genai.load_prompt("greeting", version=1).format(name="Ada") == "Hello Ada"
    assert mlflow.genai.load_prompt("prompts:/greeting/2").template == text
    assert mlflow.genai.load_prompt("prompts:/greeting@latest").version == 2
    assert mlflow.genai.load_prompt("chat").template == chat
    mlflow.genai.set_prompt_alias("greeting", "production", 1)
    assert mlflow.genai.load_prompt("prompts:/greeting@production").commit_message == "first"
    client.set_prompt_tag("greeting", "team", "red")
    client.set_prompt_version_tag("greeting", "1", "reviewed", "yes")
    assert client.get_prompt("greeting").tags["team"] == "red"
    assert client.get_prompt_version("greeting", "1").tags["reviewed"] == "yes"

    assert {prompt.name for prompt in mlflow.genai.search_prompts()} == {"greeting", "chat"}
    assert [prompt.name for prompt in mlflow.genai.search_prompts("name LIKE 'gr%'")] == ["greeting"]
    assert [found.name for found in client.search_registered_models()] == [model]
    assert {version.name for version in client.search_model_versions()} == {model}
    assert {version.version for version in client.search_prompt_versions("greeting")} == {1, 2}

    mlflow.genai.delete_prompt_alias("greeting", "production")
    client.delete_prompt_version("greeting", "1")
    assert mlflow.genai.load_prompt("greeting", version=1, allow_missing=True) is None
    client.delete_prompt_version("greeting", "2")
    client.delete_prompt("greeting")
    assert [prompt.name for prompt in mlflow.genai.search_prompts()] == ["chat"]


def test_a_prompt_and_a_model_of_one_name(client: MlflowClient, model: str):
    with pytest.raises(MlflowException, match="name is already taken|registered as a model|same name"):
        mlflow.genai.register_prompt(model.replace(" ", "-"), "text")


def test_register_a_logged_model_and_load_it_by_alias(client: MlflowClient, experiment: str):
    features, labels = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    fitted = LogisticRegression().fit(features, labels)
    with mlflow.start_run(experiment_id=experiment) as run:
        info = mlflow.sklearn.log_model(fitted, name="classifier", registered_model_name="of a logged model", pip_requirements=[])
    again = mlflow.register_model(f"runs:/{run.info.run_id}/classifier", "of a logged model")
    assert (str(info.registered_model_version), again.version) == ("1", "2")
    client.set_registered_model_alias("of a logged model", "champion", 1)

    version = client.get_model_version_by_alias("of a logged model", "champion")
    assert (version.version, version.run_id) == ("1", run.info.run_id)
    listed = json.loads(mlflow.get_logged_model(info.model_id).tags["mlflow.modelVersions"])
    # Versions are numbers if the server has written the tag, and strings if the client has.
    assert {(entry["name"], str(entry["version"])) for entry in listed} == {("of a logged model", n) for n in "12"}
    loaded = mlflow.sklearn.load_model("models:/of a logged model@champion")
    assert (loaded.predict(features) == fitted.predict(features)).all()


def test_the_files_of_a_version_are_sent_from_the_servers_own_directory(client: MlflowClient, tmp_path):
    server = ServerlessMlflow(tmp_path / "server", in_memory=True, artifact_root=str(tmp_path / "artifacts"))
    try:
        mlflow.set_tracking_uri(server.url)
        client = MlflowClient(server.url)
        run = client.create_run("0").info
        client.log_text(run.run_id, "flavors: {}\n", "model/MLmodel")
        client.create_registered_model("with files")
        client.create_model_version("with files", f"{run.artifact_uri}/model", run.run_id)

        def sent(**query: str) -> tuple[int, str]:
            answer = requests.get(f"{server.url}/model-versions/get-artifact", query, timeout=60)
            return answer.status_code, answer.text

        assert sent(name="with files", version="1", path="MLmodel") == (200, "flavors: {}\n")
        assert sent(name="with files", version="1", path="nothing")[0] == 404
        assert sent(name="with files", version="2", path="MLmodel")[0] == 404
        assert sent(name="with files", version="1")[0] == 400
        for path in ["../model/MLmodel", "%2e%2e/model/MLmodel", "/etc/passwd"]:
            assert sent(name="with files", version="1", path=path)[0] == 400
    finally:
        server.stop()
