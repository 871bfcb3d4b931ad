//! Related entities that responses about models and versions contain, and the permissions that are
//! required to see them.

use access::{Needs, Resource, Scope, Target};
use mlflow_api::RegisteredModelName;
use mlflow_api::registry::{ModelVersion, ModelVersionResponse, RegisteredModel, RegisteredModelResponse};

/// Adds the permissions that a request requires if its response contains a model with its latest
/// versions.
pub(crate) fn with_versions(needs: Needs, name: &RegisteredModelName) -> Needs {
    needs.showing([Resource::Run]).showing_in(Resource::ModelVersion, [Target::RegisteredModel(name.clone())])
}

/// Returns the response about the model that a request names, without the parts that the caller may
/// not see.
pub(crate) fn visible_model(
    scope: &Scope,
    name: &RegisteredModelName,
    mut model: RegisteredModel,
) -> RegisteredModelResponse {
    if !scope.shows_in(Resource::ModelVersion, &Target::RegisteredModel(name.clone())) {
        model.latest_versions.clear();
    }
    if !scope.shows(Resource::Run) {
        model.hide_runs();
    }
    RegisteredModelResponse { registered_model: model }
}

/// Returns the response about a version. The version's run is omitted if the caller may not see
/// runs.
pub(crate) fn visible_version(scope: &Scope, mut version: ModelVersion) -> ModelVersionResponse {
    if !scope.shows(Resource::Run) {
        version.hide_run();
    }
    ModelVersionResponse { model_version: version }
}
