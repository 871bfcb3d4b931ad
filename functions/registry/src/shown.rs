//! The other entities that answers about models and versions show, and the rights to see them.

use access::{Needs, Resource, Scope, Target};
use mlflow_api::RegisteredModelName;
use mlflow_api::registry::{ModelVersion, OneModel, OneVersion, RegisteredModel};

/// These needs of a request whose answer is a model with its latest versions.
pub(crate) fn with_versions(needs: Needs, name: &RegisteredModelName) -> Needs {
    needs.showing([Resource::Run]).showing_in(Resource::ModelVersion, [Target::RegisteredModel(name.clone())])
}

/// The answer about the model that a request names, without what its caller may not see.
pub(crate) fn model(scope: &Scope, name: &RegisteredModelName, mut model: RegisteredModel) -> OneModel {
    if !scope.shows_in(Resource::ModelVersion, &Target::RegisteredModel(name.clone())) {
        model.latest_versions.clear();
    }
    if !scope.shows(Resource::Run) {
        model.hide_runs();
    }
    OneModel { registered_model: model }
}

/// The answer about a version, likewise.
pub(crate) fn version(scope: &Scope, mut version: ModelVersion) -> OneVersion {
    if !scope.shows(Resource::Run) {
        version.hide_run();
    }
    OneVersion { model_version: version }
}
