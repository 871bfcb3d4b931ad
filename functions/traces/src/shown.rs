//! The other entities that traces show, and the rights to see them.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::ExperimentId;
use mlflow_api::traces::{MODEL_ID, SOURCE_RUN, TraceInfo};
use search::trace::Related;

/// These needs of a request whose answer holds traces: these ones, or those of these experiments.
pub(crate) fn with_traces(needs: Needs, traces: impl IntoIterator<Item = Target>) -> Needs {
    needs.showing([Resource::Run, Resource::LoggedModel]).showing_in(Resource::Assessment, traces)
}

/// A trace without what its caller may not see, where the needs named it or its experiment.
pub(crate) fn trace(scope: &Scope, named: &Target, mut info: TraceInfo) -> TraceInfo {
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

/// To read the traces of experiments, and the entities that they are selected or sorted by: the
/// found traces give these away. An experiment that may not be read is an error, as in MLflow. So
/// is a request without experiments, unless all may be read.
pub(crate) fn of_traces_in(experiments: &[ExperimentId], by: impl IntoIterator<Item = Related>) -> Needs {
    let targets = || experiments.iter().copied().map(Target::Experiment);
    let needs = Needs::nothing().and_in(Action::Read, Resource::Trace, targets());
    let needs = needs.or(Needs::read(Target::Any(Resource::Trace)));
    by.into_iter().fold(needs, |needs, related| needs.and_in(Action::Read, kind(related), targets()))
}

const fn kind(related: Related) -> Resource {
    match related {
        Related::Run => Resource::Run,
        Related::LoggedModel => Resource::LoggedModel,
        Related::Assessment => Resource::Assessment,
    }
}
