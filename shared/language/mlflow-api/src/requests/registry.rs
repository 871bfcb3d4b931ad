//! Requests about registered models, their versions and aliases (`model_registry.proto`).

use crate::RegisteredModelName;
use crate::checks::at_most;
use crate::key_value::KeyValue;
use crate::limits_registry as limits;
use crate::messages;

messages! {
    /// `registered-models/create`
    CreateModel {
        name: RegisteredModelName [Text, Required],
        tags: Vec<KeyValue> [List],
        description: String [Text],
        deployment_job_id: String,
    }
    /// `registered-models/get`, `delete`
    ModelByName {
        name: RegisteredModelName [Text, Required],
    }
    /// `registered-models/update`
    UpdateModel {
        name: RegisteredModelName [Text, Required],
        description: String [Text],
        deployment_job_id: String,
    }
    /// `registered-models/rename`
    RenameModel {
        name: RegisteredModelName [Text, Required],
        new_name: RegisteredModelName [Text, Required],
    }
    /// `registered-models/search`
    SearchModels {
        filter: String [Text],
        max_results: Option<i64> [Integer, Custom(|value| at_most(value, limits::MODELS))],
        order_by: Vec<String> [List, TextItems],
        page_token: String [Text],
    }
    /// `registered-models/get-latest-versions`
    GetLatestVersions {
        name: RegisteredModelName [Text, Required],
        stages: Vec<String> [List, TextItems],
    }
    /// `registered-models/set-tag`
    SetModelTag {
        name: RegisteredModelName [Text, Required],
        key: String [Text, Required],
        value: String [Text],
    }
    /// `registered-models/delete-tag`
    DeleteModelTag {
        name: RegisteredModelName [Text, Required],
        key: String [Text, Required],
    }
    /// `POST registered-models/alias`
    SetAlias {
        name: RegisteredModelName [Text, Required],
        alias: String [Text, Required],
        version: String [Text, Required],
    }
    /// `GET` and `DELETE registered-models/alias`
    ModelAlias {
        name: RegisteredModelName [Text, Required],
        alias: String [Text, Required],
    }
    /// `model-versions/create`
    CreateVersion {
        name: RegisteredModelName [Text, Required],
        source: String [Text, Required],
        run_id: Option<String> [Text],
        tags: Vec<KeyValue> [List],
        run_link: String [Text],
        description: String [Text],
        model_id: Option<String> [Text],
    }
    /// `model-versions/get`, `delete`
    OneVersion {
        name: RegisteredModelName [Text, Required],
        version: String [Text, Required],
    }
    /// `model-versions/get-download-uri`
    GetDownloadUri {
        name: RegisteredModelName,
        version: String,
    }
    /// `model-versions/search`
    SearchVersions {
        filter: String [Text],
        max_results: Option<i64> [Integer, Custom(|value| at_most(value, limits::VERSIONS))],
        order_by: Vec<String> [List, TextItems],
        page_token: String [Text],
    }
    /// `model-versions/update`
    UpdateVersion {
        name: RegisteredModelName [Text, Required],
        version: String [Text, Required],
        description: Option<String> [Text],
    }
    /// `model-versions/transition-stage`
    TransitionStage {
        name: RegisteredModelName [Text, Required],
        version: String [Text, Required],
        stage: String [Text, Required],
        archive_existing_versions: bool [Bool],
    }
    /// `model-versions/set-tag`
    SetVersionTag {
        name: RegisteredModelName [Text, Required],
        version: String [Text, Required],
        key: String [Text, Required],
        value: String [Text],
    }
    /// `model-versions/delete-tag`
    DeleteVersionTag {
        name: RegisteredModelName [Text, Required],
        version: String [Text, Required],
        key: String [Text, Required],
    }
}
