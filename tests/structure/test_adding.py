"""Tests that a new domain with one endpoint changes few existing files, and that the tests of all
routes include it automatically.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

#: Files written by `make docs` and by cargo.
GENERATED = {"Cargo.lock", "template.yaml", "docs/reference/coverage.md", "docs/reference/access.md", "docs/reference/levels.md"}
#: The list of all MLflow endpoints. The new endpoint is not an MLflow endpoint.
ENDPOINTS = "docs/reference/mlflow-endpoints.tsv"

_ROW = """//! The domain: its function in the stack, and how it is mounted.

use domain::{Domain, DomainApi, Environment, Function, Indexes, MountFailure, TableActions, TableRights};
use service::Route;

use crate::store::Store;

/// Greetings of experiments.
pub const DOMAIN: Domain = Domain::of::<Greetings>(Function {
    name: "greetings",
    resource: "Greetings",
    description: "Greetings of experiments.",
    paths: &["/api/2.0/mlflow/greetings/{*path}", "/ajax-api/2.0/mlflow/greetings/{*path}"],
    table: Some(TableRights { actions: TableActions::Read, indexes: Indexes::None, why: "It reads an experiment." }),
    writes_access: false,
    bucket: &[],
    secrets: &[],
    settings: &[],
    memory: Function::MEMORY,
    timeout: Function::BEHIND_GATEWAY,
    has_concurrency: false,
    layer: None,
});

struct Greetings;

impl DomainApi for Greetings {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn store(around: &Environment) -> Result<Store, MountFailure> {
        Ok(Store { table: around.table()?.clone() })
    }
}
"""

_LIB = """//! Greetings of experiments.

mod declaration;
mod store;

use access::Permission::Read;
use access::Resource::Experiment;
use access::{Needs, Scope, Target};
use mlflow_api::{ExperimentId, Request, Result};
use serde_json::{Value, json};
use service::{Endpoint, Route};

pub use declaration::DOMAIN;

/// The routes of this domain.
#[must_use]
pub fn routes() -> Vec<Route<store::Store>> {
    vec![Route::to::<Get>("GET", "greetings/get", Read(Experiment))]
}

struct Get(ExperimentId);

impl Endpoint for Get {
    type Store = store::Store;
    type Answer = Value;

    fn read(request: &Request) -> Result<Self> {
        ExperimentId::parse(request.argument("experiment_id").unwrap_or_default()).map(Self)
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::Experiment(self.0))
    }

    async fn act(self, scope: &Scope, store: &store::Store) -> Result<Value> {
        let experiment = scope.experiment(self.0)?;
        let name = store.experiment_name(&experiment).await?;
        Ok(json!({ "greeting": format!("Hello, {name}") }))
    }
}
"""

_STORE = """//! What it reads.

use access::Granted;
use key_schema::attributes::NAME;
use key_schema::rows;
use mlflow_api::{Error, ExperimentId, Result};
use table::Table;

/// The store.
#[derive(Clone)]
pub struct Store {
    pub(crate) table: Table,
}

impl Store {
    /// The name of an experiment. One request of a read unit.
    pub(crate) async fn experiment_name(&self, experiment: &Granted<ExperimentId>) -> Result<String> {
        let item = self.table.get(&rows::Experiment::key(experiment)).await?.ok_or_else(|| experiment.not_found())?;
        item.get(NAME).map(str::to_owned).ok_or_else(|| Error::internal("an experiment without a name"))
    }
}

impl service::DomainStore for Store {
    fn table(&self) -> &Table {
        &self.table
    }
}
"""

_MAIN = """//! The greetings function as a Lambda.

#[tokio::main]
async fn main() -> Result<(), domain::lambda::Error> {
    domain::lambda::run(&[&greetings::DOMAIN], &[]).await
}
"""

_MANIFEST = """[package]
name = "greetings"
description = "Greetings of experiments"
version.workspace = true
edition.workspace = true
license.workspace = true
publish.workspace = true

[lib]
doctest = false

[[bin]]
name = "greetings"
path = "src/main.rs"
test = false

[dependencies]
access.workspace = true
domain.workspace = true
key-schema.workspace = true
mlflow-api.workspace = true
serde_json.workspace = true
service.workspace = true
table.workspace = true
tokio.workspace = true

[lints]
workspace = true
"""

_SAMPLES = """//! Samples of greetings.

use serde_json::json;

use crate::tracking::experiment;
use crate::walk::{V2, Walk};

pub(crate) async fn reads(walk: &mut Walk) {
    let experiment = experiment(walk, "greeted").await;
    walk.read(vec![(format!("GET {V2}/greetings/get?experiment_id={experiment}"), json!({}))]).await;
}
"""


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, f"{old!r} in {file}"
    file.write_text(text.replace(old, new))


def one_more(file: Path, before: str) -> None:
    """Increments the length of a list, which follows the text `before`."""
    text = file.read_text()
    found = re.search(re.escape(before) + r"(\d+)\]", text)
    file.write_text(f"{text[: found.start(1)]}{int(found[1]) + 1}{text[found.end(1) :]}")


def add(copy: Path) -> None:
    """Adds a domain as described in docs/design/adding.md."""
    own = copy / "functions/greetings"
    (own / "src").mkdir(parents=True)
    for name, text in [("Cargo.toml", _MANIFEST), ("src/declaration.rs", _ROW), ("src/lib.rs", _LIB), ("src/store.rs", _STORE), ("src/main.rs", _MAIN)]:
        (own / name).write_text(text)
    (copy / "shared/testing/test-site/src/route_samples/greetings.rs").write_text(_SAMPLES)
    replace(copy / "Cargo.toml", 'key-schema = { path', 'greetings = { path = "functions/greetings" }\nkey-schema = { path')
    replace(copy / "domains/Cargo.toml", "graphql.workspace = true\n", "graphql.workspace = true\ngreetings.workspace = true\n")
    one_more(copy / "domains/src/lib.rs", "DOMAINS: [&Domain; ")
    replace(copy / "domains/src/lib.rs", "    &ui::DOMAIN,\n", "    &ui::DOMAIN,\n    &greetings::DOMAIN,\n")
    samples = copy / "shared/testing/test-site/src/route_samples/mod.rs"
    replace(samples, "mod graphql;\n", "mod graphql;\nmod greetings;\n")
    one_more(samples, "SAMPLES: [Samples; ")
    replace(samples, "\n];\n\n/// All samples, one domain", """
    Samples {
        domain: "greetings",
        writes: |_| Box::pin(std::future::ready(())),
        reads: |walk| Box::pin(greetings::reads(walk)),
    },
];

/// All samples, one domain""")
    with (copy / ENDPOINTS).open("a") as endpoints:
        columns = len((copy / ENDPOINTS).read_text().splitlines()[0].split("\t"))
        endpoints.write("\t".join(["GET", "/api/2.0/mlflow/greetings/get", "", "greetings"] + [""] * (columns - 4)) + "\n")
    overview = copy / "ARCHITECTURE.md"
    line = next(line for line in overview.read_text().splitlines() if line.startswith("| `graphql` |"))
    replace(overview, line, f"{line}\n| `greetings` | greetings of experiments |")
    with (copy / "docs/reference/limits.md").open("a") as limits:
        limits.write("\n| method | path | answer | reads |\n|---|---|---|---|\n| GET | `/api/2.0/mlflow/greetings/get` | a name | one item |\n")


@pytest.mark.slow
def test_a_domain_with_one_endpoint_changes_six_files_beside_its_own():
    # The crates are compiled in the repository's own target directory, always at the same path, so
    # that the dependencies do not have to be compiled again.
    target = REPOSITORY / "target"
    copy = target / "adding"
    shutil.rmtree(copy, ignore_errors=True)
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True).stdout.decode()
    for name in filter(None, tracked.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, copy / name)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run([*git, "init", "-q"], cwd=copy, check=True)
    subprocess.run([*git, "add", "-A"], cwd=copy, check=True)
    subprocess.run([*git, "commit", "-qm", "before"], cwd=copy, check=True)
    add(copy)
    environment = os.environ | {"UPDATE_DOCS": "1", "CARGO_TARGET_DIR": str(target)}

    def cargo(*arguments: str) -> None:
        # The whole workspace, because the features of the dependencies would differ otherwise.
        run = subprocess.run(["cargo", "test", "--workspace", *arguments], cwd=copy, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-5000:]

    walks = ["access_page", "needs", "throttling::every", "unreadable", "front", "workspaces"]
    try:
        cargo("--test", "generated")
        cargo("--test", "it", "--", *walks)
    finally:
        # Otherwise, cargo would confuse the crates of the copy with those of the repository.
        clean = ["cargo", "clean", "--package", "test-site", "--package", "domains"]
        subprocess.run(clean, cwd=REPOSITORY, env=environment, capture_output=True, check=True)
    status = subprocess.run(["git", "status", "--porcelain", "-uall"], cwd=copy, capture_output=True, text=True, check=True).stdout
    changed = {line[3:] for line in status.splitlines()}
    own = {name for name in changed if name.startswith("functions/greetings/") or name == "shared/testing/test-site/src/route_samples/greetings.rs"}
    beside = changed - own - GENERATED - {ENDPOINTS}
    assert len(beside) <= 6, beside
    assert "/api/2.0/mlflow/greetings/get" in (copy / "docs/reference/access.md").read_text()
    assert "GreetingsFunction" in (copy / "template.yaml").read_text()
