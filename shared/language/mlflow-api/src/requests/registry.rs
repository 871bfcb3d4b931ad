//! Requests about registered models, their versions and aliases (`model_registry.proto`).

use crate::RegisteredModelName;
use crate::checks::at_most;
use crate::key_value::KeyValue;
use crate::limits_registry as limits;
use crate::messages;

messages! {
    /// The request message of `registered-models/create`.
    CreateModel {
        name: RegisteredModelName [Text, Required],
        tags: Vec<KeyValue> [List],
        description: String [Text],
        deployment_job_id: String,
    }
    /// The request message of `registered-models/get` and `delete`.
    ModelByName {
        name: RegisteredModelName [Text, Required],
    }
    /// The request message of `registered-models/update`.
    UpdateModel {
        name: RegisteredModelName [Text, Required],
        description: String [Text],
        deployment_job_id: String,
    }
    /// The request message of `registered-models/rename`.
    RenameModel {
        name: RegisteredModelName [Text, Required],
        new_name: RegisteredModelName [Text, Required],
    }
    /// The request message of `registered-models/search`.
    SearchModels {
        filter: String [Text],
        max_results: Option<i64> [Integer, Custom(|value| at_most(value, limits::MODELS))],
        order_by: Vec<String> [List, TextItems],
        page_token: String [Text],
    }
    /// The request message of `registered-models/get-latest-versions`.
    GetLatestVersions {
        name: RegisteredModelName [Text, Required],
        stages: Vec<String> [List, TextItems],
    }
    /// The request message of `registered-models/set-tag`.
    SetModelTag {
        name: RegisteredModelName [Text, Required],
        key: String [Text, Required],
        value: String [Text],
    }
    /// The request message of `registered-models/delete-tag`.
    DeleteModelTag {
        name: RegisteredModelName [Text, Required],
        key: String [Text, Required],
    }
    /// The request message of `POST registered-models/alias`.
    SetAlias {
        name: RegisteredModelName [Text, Required],
        alias: String [Text, Required],
        version: String [Text, Required],
    }
    /// The request message of `GET` and `DELETE registered-models/alias`.
    ModelAlias {
        name: RegisteredModelName [Text, Required],
        alias: String [Text, Required],
    }
    /// The request message of `model-versions/create`.
    CreateVersion {
        name: RegisteredModelName [Text, Required],
        source: String [Text, Required],
        run_id: Option<String> [Text],
        tags: Vec<KeyValue> [List],
        run_link: String [Text],
        description: String [Text],
        model_id: Option<String> [Text],
    }
    /// The request message of `model-versions/get` and `delete`.
    OneVersion {
        name: RegisteredModelName [Text, Required],
        version: String [Text, Required],
    }
    /// The request message of `model-versions/get-download-uri`.
    GetDownloadUri {
        name: RegisteredModelName,
        version: String,
    }
    /// The request message of `model-versions/search`.
    SearchVersions {
        filter: String [Text],
        max_results: Option<i64> [Integer, Custom(|value| at_most(value, limits::VERSIONS))],
        order_by: Vec<String> [List, TextItems],
        page_token: String [Text],
    }
    /// The request message of `model-versions/update`.
    UpdateVersion {
        name: RegisteredModelName [Text, Required],
        version: String [Text, Required],
        description: Option<String> [Text],
    }
    /// The request message of `model-versions/transition-stage`.
    TransitionStage {
        name: RegisteredModelName [Text, Required],
        version: String [Text, Required],
        stage: String [Text, Required],
        archive_existing_versions: bool [Bool],
    }
    /// The request message of `model-versions/set-tag`.
    SetVersionTag {
        name: RegisteredModelName [Text, Required],
        version: String [Text, Required],
        key: String [Text, Required],
        value: String [Text],
    }
    /// The request message of `model-versions/delete-tag`.
    DeleteVersionTag {
        name: RegisteredModelName [Text, Required],
        version: String [Text, Required],
        key: String [Text, Required],
    }
}
