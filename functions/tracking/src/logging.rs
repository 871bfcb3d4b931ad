//! Endpoints of `runs/…` that log data to a run.

mod inputs_and_outputs;
mod metrics;
mod model_tag;
mod params_and_tags;

pub(crate) use inputs_and_outputs::{LogInputs, LogOutputs};
pub(crate) use metrics::{LogBatch, LogMetric};
pub(crate) use model_tag::LogModel;
pub(crate) use params_and_tags::{DeleteTag, LogParam, SetTag};
