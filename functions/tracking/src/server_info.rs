//! The server's version and capabilities.

use access::{Needs, Scope};
use mlflow_api::{Request, Result};
use serde::Serialize;
use service::Endpoint;

use crate::store::Store;

/// The version of MLflow whose API this server implements. Clients use it to decide which requests
/// the server supports.
pub const VERSION: &str = "3.17.2";

/// The telemetry settings in the response to the UI. Telemetry is disabled.
pub(crate) const TELEMETRY_SETTINGS: &str =
    r#"{"disable_ui_telemetry":true,"disable_ui_events":[],"ui_rollout_percentage":0}"#;

/// The response to `server-info`: the server's capabilities.
#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "MLflow's answer is a list of switches")]
pub(crate) struct ServerInfo {
    store_type: &'static str,
    workspaces_enabled: bool,
    trace_archival_enabled: bool,
    multipart_uploads_enabled: bool,
    multipart_downloads_enabled: bool,
    presigned_upload_run_id_supported: bool,
    presigned_upload_model_id_supported: bool,
    features_enabled: Features,
    /// Fields about uploads of the content of skills. Missing if the server does not store
    /// artifacts.
    #[serde(flatten)]
    skill_content: Option<ContentUploads>,
    /// Fields about artifacts that are stored in a bucket. MLflow has returned these fields since
    /// version 3.18.
    #[serde(flatten)]
    in_bucket: Option<InBucket>,
}

#[derive(Serialize)]
struct ContentUploads {
    artifact_serving_enabled: bool,
    skill_content_max_size: usize,
    skill_content_max_files: usize,
}

#[derive(Serialize)]
struct InBucket {
    model_artifact_presigned_downloads_supported: bool,
    /// Whether clients have to upload and download files through presigned URLs only.
    artifacts_presigned_only: bool,
}

#[derive(Serialize)]
struct Features {
    gateway: bool,
}

pub(crate) struct Info;

impl Endpoint for Info {
    type Store = Store;
    type Answer = ServerInfo;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, _: &Scope, store: &Store) -> Result<ServerInfo> {
        let workspaces_enabled = store.has_workspaces();
        let artifacts = store.artifacts();
        let has_urls = artifacts.has_urls();
        let in_bucket = has_urls.then(|| InBucket {
            model_artifact_presigned_downloads_supported: true,
            artifacts_presigned_only: artifacts.is_presigned_only(),
        });
        let limits = store.skill_limits();
        let skill_content = artifacts.are_kept().then_some(ContentUploads {
            artifact_serving_enabled: true,
            skill_content_max_size: limits.bytes,
            skill_content_max_files: limits.files,
        });
        Ok(ServerInfo {
            skill_content,
            multipart_uploads_enabled: has_urls,
            multipart_downloads_enabled: has_urls,
            in_bucket,
            workspaces_enabled,
            trace_archival_enabled: store.has_trace_archival().await,
            ..INFO
        })
    }
}

const INFO: ServerInfo = ServerInfo {
    // The UI hides some features unless the server reports MLflow's SQL store. This server supports
    // those features, so it reports that store type.
    store_type: "SqlStore",
    workspaces_enabled: false,
    trace_archival_enabled: false,
    multipart_uploads_enabled: false,
    multipart_downloads_enabled: false,
    // The endpoint for presigned uploads accepts run ids as well as model ids. Whether it returns a
    // presigned URL depends on where the artifacts are stored.
    presigned_upload_run_id_supported: true,
    presigned_upload_model_id_supported: true,
    features_enabled: Features { gateway: false },
    skill_content: None,
    in_bucket: None,
};
