//! The tracking function: experiments, runs, metrics, params, tags, logged models, datasets of
//! runs.
//!
//! [`routes`] lists the whole API on one page. A handler parses its request and calls one method of
//! the [`store`], which accesses the table and contains no HTTP. `declaration.rs` declares the
//! domain, and `main.rs` is the Lambda binary.
//!
//! | file | contents |
//! |---|---|
//! | `experiments.rs`, `runs.rs`, `logging.rs`, `metrics.rs`, `logged_models.rs`, `server_info.rs` | endpoints |
//! | `ui_placeholders.rs` | empty responses to the user interface's requests for features that this server does not have |
//! | `disabled_features.rs` | refusals of the AI gateway, jobs, prompt optimization and the Assistant |
//! | `store/experiment`, `store/run`, `store/metric`, `store/logged_model` | one folder per resource |
//! | `store/run/read.rs` | `runs/get`: `docs/design/run-metrics.md` |
//! | `store/run_search` | searches of runs: `docs/design/run-index.md` |
//! | `store/log_batch.rs`, `store/metric/metric_logging.rs`, `store/run/run_cache.rs` | logging: `docs/design/run-metrics.md` |
//!
//! # How a metric is logged
//!
//! `POST runs/log-metric` → `logging::LogMetric` → `Store::run_log_metric`.
//!
//! 1. `LogMetric::needs` names the run, and the logged model if the metric belongs to one. A run's
//!    id contains its experiment, so finding the experiment takes no request.
//! 2. `run_to_log` uses leases of 300 ms on the run and its experiment. If a lease has expired, it
//!    reads the run and the experiment in one request. It rejects deleted runs.
//! 3. `metrics_log` writes the points to the run's document or to its journal.
//!    `docs/design/run-metrics.md` describes how points are stored and packed.
//!
//! # How a batch is logged
//!
//! `POST runs/log-batch` → `logging::LogBatch` → `Store::run_log_batch`.
//!
//! 1. `LogBatch::read` rejects what MLflow rejects, before anything is read or written.
//! 2. If all params and tags of the batch are small, they are written to the run's document
//!    (`shared/storage/entities/src/documents`) with one optimistic `UpdateItem`. Its conditions
//!    are that every param is absent or (for up to 20 params) has an equal value, that the document
//!    is not full, and that the run has no rows of params.
//! 3. If a condition fails, the response contains the document, and the next attempt is planned
//!    from it. Params with equal values are dropped, and different values are an error. Large
//!    values become rows in the transaction that updates the document.
//! 4. If the document has room for the metrics, they are part of the same update. Otherwise, they
//!    are logged after the params and tags, like a single metric. Ten or more points of one metric
//!    become segments immediately.
//!
//! # How experiments are listed
//!
//! `GET experiments/search` → `experiments::Search` → `Store::experiment_search`
//! (`store/experiment/search.rs`). The row that claims an experiment's name is also the
//! experiment's entry in two lists of the workspace's partition: by creation (LSI1) and by last
//! change (LSI2). `list_entry.rs` reads the fields that an entry contains.
//!
//! 1. The user interface requests active experiments, ordered by one of these two times.
//!    `time_lists.rs` reads the corresponding list from the page token on, as far as the page needs
//!    it. Entries with equal timestamps (in ms) are held back until all of them have been read.
//! 2. For any other order or stage, or a filter by a prefix of the name, all matching names are
//!    read. They are sorted before experiments are read if the entries contain every field that the
//!    search uses.
//! 3. In both cases, the experiments that may pass are then read, a hundred per request, and
//!    checked.
//!
//! # How an experiment is deleted
//!
//! `POST experiments/delete` → `experiments::Delete` → `Store::experiment_delete`.
//!
//! 1. The experiment is read. Its item contains its stage and its stage version, which counts
//!    deletions and restorations.
//! 2. One transaction deletes the experiment, regardless of its number of runs. The experiment gets
//!    `stage = deleted` and the next stage version, and the row of its name gets the index key of
//!    deleted experiments.
//! 3. The call waits 300 ms, the length of a lease, before it returns. From then on every process
//!    sees the deletion, because a run's stage is computed from the run's item and the experiment's
//!    stage version (`entities::run_stage`).
//!
//! Restoring is the reverse, without the wait. Runs that had been deleted individually become
//! active again, as in MLflow.
//!
//! # Logged models
//!
//! A **logged model** is a model that a run logged. A *registered model* is a named entry of the
//! model registry. The endpoints in `logged_models.rs` call `store/logged_model`.
//! `shared/storage/entities` reads logged models from items, and `shared/language/search` has their
//! filter grammar.
//!
//! 1. Like a run, a model is a document whose id contains its experiment.
//! 2. Every response about a model contains every point of its metrics. New points are collected in
//!    sets in one metrics document. When the document exceeds 8 KB, all its points are sealed, that
//!    is, moved to segments in a separate partition of the model.
//! 3. LSI1 lists the newest models, and LSI3 the models of a run. Any other search reads all models
//!    of its experiments and keeps a page of them. There are no further indexes of models.
//! 4. `shared/storage/artifact-store` lists and serves the artifacts of models.

mod artifact_location;
mod declaration;
pub mod disabled_features;
mod experiments;
mod logged_models;
mod logging;
mod metrics;
mod routes;
mod runs;
mod server_info;
pub mod store;
pub mod ui_placeholders;

pub use declaration::DOMAIN;
pub use routes::routes;
pub use server_info::VERSION;

/// Returns the domain's router over a given store. For tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    let routes = routes().into_iter().chain(ui_placeholders::routes()).chain(disabled_features::routes()).collect();
    service::router(routes, &service::FunctionContext::new(store.clone(), authorizer))
}
