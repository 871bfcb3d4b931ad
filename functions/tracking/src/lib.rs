//! The tracking function: experiments, runs, metrics, params, tags, logged models, datasets of
//! runs.
//!
//! [`routes`] is its whole API on one page. A handler reads its request and makes one call of the
//! [`store`]. The store knows the table and nothing of HTTP. `declaration.rs` declares the domain,
//! and `main.rs` makes it a Lambda.
//!
//! | file | what it has |
//! |---|---|
//! | `experiments.rs`, `runs.rs`, `logging.rs`, `metrics.rs`, `logged_models.rs`, `server.rs` | endpoints |
//! | `absent.rs` | empty answers for what the user interface asks for and this server does not have |
//! | `store/experiment`, `store/run`, `store/metric`, `store/logged_model` | one folder per resource |
//! | `store/run/read.rs` | `runs/get`: `docs/run-metrics.md` |
//! | `store/run_search` | searches of runs: `docs/run-index.md` |
//! | `store/log_batch.rs`, `store/metric/log.rs`, `store/run/logged.rs` | logging: `docs/run-metrics.md` |
//!
//! # A client logs a metric
//!
//! `POST runs/log-metric` → `logging::LogMetric` → `Store::run_log_metric`.
//!
//! 1. `LogMetric::needs` names the run, and a logged model if the metric is one's. The id of a run
//!    holds its experiment, so no request is needed to find it.
//! 2. `run_to_log` has leases on the run and its experiment from the last 300 ms, or reads what is
//!    missing with one request. It refuses a deleted run.
//! 3. `metrics_log` writes the points into the run's document or into its journal.
//!    `docs/run-metrics.md` tells the rest.
//!
//! # A client logs a batch
//!
//! `POST runs/log-batch` → `logging::LogBatch` → `Store::run_log_batch`.
//!
//! 1. `LogBatch::read` refuses what MLflow refuses, before anything is read or written.
//! 2. Params and tags go into the run's document (`shared/documents`) with one optimistic
//!    `UpdateItem`, if all are small. Its conditions: every param is missing or (up to 20 params)
//!    equal, and the document is neither full nor has rows of params.
//! 3. A refusal brings the document, and the next attempt is planned from it. Equal params are
//!    dropped, different ones are an error. Big values become rows in the same transaction.
//! 4. Metrics follow as above, or are in the same update if the document takes them. Ten points or
//!    more of one metric go straight into segments.
//!
//! # The list of experiments
//!
//! `GET experiments/search` → `experiments::Search` → `Store::experiment_search`
//! (`store/experiment/search.rs`). The row of each name has two entries in lists of the workspace's
//! partition: by creation (LSI1) and by the last change (LSI2). `listed.rs` reads what an entry
//! says.
//!
//! 1. The user interface asks for active experiments in the order of one of these times.
//!    `by_time.rs` reads that list from the page token on, as far as the page needs it. It holds
//!    entries of one millisecond back until all of them are there.
//! 2. For any other order or stage, or a filter by the beginning of names, the names are read
//!    whole. They are sorted where they hold all that the search asks.
//! 3. Either way, the experiments that may pass are read, a hundred per request, and checked.
//!
//! # An experiment is deleted
//!
//! `POST experiments/delete` → `experiments::Delete` → `Store::experiment_delete`.
//!
//! 1. The experiment is read: its stage and its stage version, the count of deletions and
//!    restorations.
//! 2. One transaction, however many runs there are: the experiment gets `stage = deleted` and the
//!    next version. The row of its name gets the index key of deleted experiments.
//! 3. The call waits 300 ms and answers. From then on every process sees the deletion: a run's
//!    stage is computed from its own item and the experiment's version (`entities::run_stage`).
//!
//! Restoring is the same in reverse, without the wait. Runs that were deleted on their own before
//! are active again, as in MLflow.
//!
//! # Logged models
//!
//! A **logged model** is a model that a run logged. A *registered model* is a named entry of the
//! model registry. `logged_models.rs` → `store/logged_model`. `shared/entities` reads them from
//! items, `shared/search` has their grammar of filters.
//!
//! 1. A model is a document like a run. Its id holds its experiment likewise.
//! 2. Every point of its metrics is in every answer about it. Points wait in the sets of one
//!    document. At 8 KB it is sealed whole into the model's own partition.
//! 3. The newest models are found in LSI1, those of a run in LSI3. Any other search reads the
//!    models of its experiments whole and keeps a page. They are not indexed further.
//! 4. `shared/artifact-store` lists and sends their artifacts.

pub mod absent;
mod artifact_location;
mod declaration;
mod experiments;
mod logged_models;
mod logging;
mod metrics;
mod routes;
mod runs;
mod server;
pub mod store;

pub use declaration::DOMAIN;
pub use routes::routes;
pub use server::VERSION;

/// The router of the domain over a store of one's own: for tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    let routes = routes().into_iter().chain(absent::routes()).collect();
    service::router(routes, &service::Frame::guarded(store.clone(), authorizer))
}
