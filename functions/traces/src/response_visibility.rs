//! Related entities that responses about traces reveal, and the permissions that are required to
//! see them.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::ExperimentId;
use mlflow_api::traces::{MODEL_ID, SOURCE_RUN, TraceInfo};
use search::trace::RelatedEntity;

/// Extends the permissions that a request requires, because its response contains traces. `traces`
/// are the traces themselves or their experiments, as permission targets.
pub(crate) fn with_traces(needs: Needs, traces: impl IntoIterator<Item = Target>) -> Needs {
    needs.showing([Resource::Run, Resource::LoggedModel]).showing_in(Resource::Assessment, traces)
}

/// Removes the parts of a trace that the caller may not see. `named` is the trace or its
/// experiment, and must be one of the targets of the request's permission check.
pub(crate) fn visible_trace(scope: &Scope, named: &Target, mut info: TraceInfo) -> TraceInfo {
    if !scope.shows_in(Resource::Assessment, named) {
        info.hide_assessments();
    }
    for (kind, key) in [(Resource::Run, SOURCE_RUN), (Resource::LoggedModel, MODEL_ID)] {
        if !scope.shows(kind) {
            info.hide_metadata(key);
        }
    }
    info
}

/// Returns the permissions for searching the traces of experiments. They include permissions on the
/// related entities by which traces are filtered or sorted, because the results reveal information
/// about these entities. As in MLflow, an experiment that the caller may not read is an error. A
/// request without experiments requires the right to read all traces.
pub(crate) fn search_needs(experiments: &[ExperimentId], by: impl IntoIterator<Item = RelatedEntity>) -> Needs {
    let targets = || experiments.iter().copied().map(Target::Experiment);
    let needs = Needs::nothing().and_in(Action::Read, Resource::Trace, targets());
    let needs = needs.or(Needs::read(Target::Any(Resource::Trace)));
    by.into_iter().fold(needs, |needs, related| needs.and_in(Action::Read, kind(related), targets()))
}

const fn kind(related: RelatedEntity) -> Resource {
    match related {
        RelatedEntity::Run => Resource::Run,
        RelatedEntity::LoggedModel => Resource::LoggedModel,
        RelatedEntity::Assessment => Resource::Assessment,
    }
}
