//! The route table: method, path, permission, handler.

use access::Permission::{Create, Delete, List, Read, Update};
use access::Resource::RegisteredModel;
use service::{Paths, Route};

use crate::store::Store;
use crate::{aliases, models, versions};

/// The rows of this function.
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
        Route::to::<models::LatestVersions>("GET", "registered-models/get-latest-versions", Read(RegisteredModel)),
        Route::to::<models::LatestVersions>("POST", "registered-models/get-latest-versions", Read(RegisteredModel)),
        //
        Route::to::<aliases::Get>("GET", "registered-models/alias", Read(RegisteredModel)),
        Route::to::<aliases::Set>("POST", "registered-models/alias", Update(RegisteredModel)),
        Route::to::<aliases::Delete>("DELETE", "registered-models/alias", Update(RegisteredModel)),
        //
        Route::to::<versions::Create>("POST", "model-versions/create", Update(RegisteredModel)),
        Route::to::<versions::Get>("GET", "model-versions/get", Read(RegisteredModel)),
        Route::to::<versions::GetDownloadUri>("GET", "model-versions/get-download-uri", Read(RegisteredModel)),
        Route::to::<versions::GetArtifact>("GET", "/model-versions/get-artifact", Read(RegisteredModel))
            .under(Paths::Bare),
        Route::to::<versions::Search>("GET", "model-versions/search", List(RegisteredModel)),
        Route::to::<versions::Update>("PATCH", "model-versions/update", Update(RegisteredModel)),
        Route::to::<versions::TransitionStage>("POST", "model-versions/transition-stage", Update(RegisteredModel)),
        Route::to::<versions::Delete>("DELETE", "model-versions/delete", Delete(RegisteredModel)),
        Route::to::<versions::SetTag>("POST", "model-versions/set-tag", Update(RegisteredModel)),
        Route::to::<versions::DeleteTag>("DELETE", "model-versions/delete-tag", Update(RegisteredModel)),
    ]
}
