//! Handlers of `runs/…` but for what logs to a run.

use mlflow_api::checks::Check::{Custom, Integer, List, Required, Text, TextItems};
use mlflow_api::checks::at_most;
use mlflow_api::message::Message;
use mlflow_api::tracking::{self as wire, Empty, OneRun, RunStatus, Runs, UpdatedRun};
use mlflow_api::{Error, ErrorCode, ExperimentId, Request, Result, limits};

use crate::experiments::view;
use crate::store::{NewRun, RunChange, RunSearch, Store};

/// Runs on a page where the request does not say (`SearchRuns` in `service.proto`).
const DEFAULT_PAGE: i64 = 1_000;

pub(crate) async fn create(store: Store, request: Request) -> Result<OneRun> {
    let message = request
        .message(wire::CREATE_RUN, &[("experiment_id", &[Text]), ("start_time", &[Integer]), ("run_name", &[Text])])?;
    let new = NewRun {
        user_id: message.text("user_id").to_owned(),
        name: message.text("run_name").to_owned(),
        start_time: message.int("start_time"),
        tags: message.key_values("tags"),
    };
    let experiment = message.text("experiment_id");
    if experiment.is_empty() {
        // MLflow looks for the default experiment, and then fails to write a run that names none.
        return Err(Error::new(ErrorCode::BadRequest, "A run needs the id of its experiment."));
    }
    let run = store.run_create(ExperimentId::parse(experiment)?, &new).await?;
    Ok(OneRun { run })
}

pub(crate) async fn get(store: Store, request: Request) -> Result<OneRun> {
    let message = request.message(wire::GET_RUN, &[("run_id", &[Required, Text])])?;
    let run = store.run_get(run_id(&message)).await?;
    Ok(OneRun { run })
}

pub(crate) async fn search(store: Store, request: Request) -> Result<Runs> {
    let message = request.message(
        wire::SEARCH_RUNS,
        &[
            ("experiment_ids", &[List]),
            ("filter", &[Text]),
            ("max_results", &[Integer, Custom(|value| at_most(value, limits::SEARCH_RESULTS))]),
            ("order_by", &[List, TextItems]),
        ],
    )?;
    let search = RunSearch {
        experiment_ids: message.texts("experiment_ids"),
        filter: message.text("filter").to_owned(),
        view: view(&message, "run_view_type"),
        max_results: message.optional_int("max_results").unwrap_or(DEFAULT_PAGE),
        order_by: message.texts("order_by"),
        page_token: message.text("page_token").to_owned(),
    };
    store.run_search(&search).await
}

pub(crate) async fn update(store: Store, request: Request) -> Result<UpdatedRun> {
    let message = request.message(
        wire::UPDATE_RUN,
        &[("run_id", &[Required, Text]), ("end_time", &[Integer]), ("status", &[Text]), ("run_name", &[Text])],
    )?;
    let change = RunChange {
        status: message.optional_int("status").and_then(RunStatus::from_number),
        end_time: message.optional_int("end_time"),
        name: message.optional_text("run_name").map(str::to_owned),
    };
    let run_info = store.run_update(run_id(&message), &change).await?;
    Ok(UpdatedRun { run_info })
}

pub(crate) async fn delete(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(wire::RUN_ID, &[("run_id", &[Required, Text])])?;
    store.run_delete(message.text("run_id")).await?;
    Ok(Empty {})
}

pub(crate) async fn restore(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(wire::RUN_ID, &[("run_id", &[Required, Text])])?;
    store.run_restore(message.text("run_id")).await?;
    Ok(Empty {})
}

/// The run a message names, under its new or its old name.
pub(crate) fn run_id(message: &Message) -> &str {
    match message.text("run_id") {
        "" => message.text("run_uuid"),
        run_id => run_id,
    }
}
