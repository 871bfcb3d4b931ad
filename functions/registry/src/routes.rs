//! The route table: method, path, permission, handler.

use access::Permission::{Create, Delete, List, Manage, Read, Update};
use access::Resource::{ModelVersion, RegisteredModel};
use service::{Paths, Route};

use crate::store::Store;
use crate::{aliases, models, versions};

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    vec![
        Route::to::<models::Create>("POST", "registered-models/create", Create(RegisteredModel)),
        Route::to::<models::Get>("GET", "registered-models/get", Read(RegisteredModel)),
        Route::to::<models::Search>("GET", "registered-models/search", List(RegisteredModel)),
        Route::to::<models::Update>("PATCH", "registered-models/update", Update(RegisteredModel)),
        Route::to::<models::Rename>("POST", "registered-models/rename", Update(RegisteredModel)),
        Route::to::<models::Delete>("DELETE", "registered-models/delete", Delete(RegisteredModel)),
        Route::to::<models::SetTag>("POST", "registered-models/set-tag", Update(RegisteredModel)),
        Route::to::<models::DeleteTag>("DELETE", "registered-models/delete-tag", Update(RegisteredModel)),
        Route::to::<models::LatestVersions>("GET", "registered-models/get-latest-versions", Read(ModelVersion)),
        Route::to::<models::LatestVersions>("POST", "registered-models/get-latest-versions", Read(ModelVersion)),
        //
        Route::to::<aliases::Get>("GET", "registered-models/alias", Read(ModelVersion)),
        Route::to::<aliases::Set>("POST", "registered-models/alias", Update(RegisteredModel)),
        Route::to::<aliases::Delete>("DELETE", "registered-models/alias", Manage(RegisteredModel)),
        //
        Route::to::<versions::Create>("POST", "model-versions/create", Create(ModelVersion)),
        Route::to::<versions::Get>("GET", "model-versions/get", Read(ModelVersion)),
        Route::to::<versions::GetDownloadUri>("GET", "model-versions/get-download-uri", Read(ModelVersion)),
        Route::to::<versions::GetArtifact>("GET", "/model-versions/get-artifact", Read(ModelVersion))
            .under(Paths::Bare),
        Route::to::<versions::Search>("GET", "model-versions/search", List(ModelVersion)),
        Route::to::<versions::Update>("PATCH", "model-versions/update", Update(ModelVersion)),
        Route::to::<versions::TransitionStage>("POST", "model-versions/transition-stage", Update(ModelVersion)),
        Route::to::<versions::Delete>("DELETE", "model-versions/delete", Delete(ModelVersion)),
        Route::to::<versions::SetTag>("POST", "model-versions/set-tag", Update(ModelVersion)),
        Route::to::<versions::DeleteTag>("DELETE", "model-versions/delete-tag", Delete(ModelVersion)),
    ]
}
