//! The route table: method, path, permission, handler.

use access::Permission::{Delete, Read, ReadFiles, Update};
use access::Resource::{Experiment, Run};
use service::{Paths, Route};

use crate::store::Store;
use crate::{multipart, presigned_urls, proxy, run_artifacts};

/// Returns the routes of this function. Requests below `mlflow-artifacts/` require permissions on
/// the experiment or the model version in the path. If the path names neither, they require
/// permissions on all experiments.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    let proxied = |route: Route<Store>| route.under(Paths::Artifacts);
    vec![
        proxied(Route::to::<proxy::List>("GET", "artifacts", ReadFiles)),
        proxied(Route::to::<proxy::Download>("GET", "artifacts/{*artifact_path}", ReadFiles)),
        proxied(Route::upload::<proxy::Put>("PUT", "artifacts/{*artifact_path}", Update(Experiment))),
        proxied(Route::to::<proxy::Delete>("DELETE", "artifacts/{*artifact_path}", Delete(Experiment))),
        proxied(Route::to::<multipart::Create>("POST", "mpu/create/{*artifact_path}", Update(Experiment))),
        proxied(Route::to::<multipart::Complete>("POST", "mpu/complete/{*artifact_path}", Update(Experiment))),
        proxied(Route::to::<multipart::Abort>("POST", "mpu/abort/{*artifact_path}", Update(Experiment))),
        proxied(Route::to::<multipart::Presigned>("GET", "presigned/{*artifact_path}", ReadFiles)),
        //
        Route::to::<run_artifacts::List>("GET", "artifacts/list", Read(Run)),
        Route::to::<run_artifacts::Get>("GET", "/get-artifact", Read(Run)).under(Paths::Bare),
        Route::upload::<run_artifacts::Put>("POST", "upload-artifact", Update(Run)).under(Paths::AjaxV2),
        // The path in the request is that of a run or of a logged model, on whose experiment the
        // permission is checked.
        Route::to::<presigned_urls::UploadUrl>("POST", "artifacts/presigned-upload-url", Update(Experiment)),
        Route::to::<presigned_urls::DownloadUrl>("POST", "artifacts/presigned-download-url", Read(Run)),
    ]
}
