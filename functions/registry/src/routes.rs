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
        Route::new("POST", "registered-models/create", Create(RegisteredModel), models::create),
        Route::new("GET", "registered-models/get", Read(RegisteredModel), models::get),
        Route::new("GET", "registered-models/search", List(RegisteredModel), models::search),
        Route::new("PATCH", "registered-models/update", Update(RegisteredModel), models::update),
        Route::new("POST", "registered-models/rename", Update(RegisteredModel), models::rename),
        Route::new("DELETE", "registered-models/delete", Delete(RegisteredModel), models::delete),
        Route::new("POST", "registered-models/set-tag", Update(RegisteredModel), models::set_tag),
        Route::new("DELETE", "registered-models/delete-tag", Update(RegisteredModel), models::delete_tag),
        Route::new("GET", "registered-models/get-latest-versions", Read(RegisteredModel), models::latest_versions),
        Route::new("POST", "registered-models/get-latest-versions", Read(RegisteredModel), models::latest_versions),
        //
        Route::new("GET", "registered-models/alias", Read(RegisteredModel), aliases::get),
        Route::new("POST", "registered-models/alias", Update(RegisteredModel), aliases::set),
        Route::new("DELETE", "registered-models/alias", Update(RegisteredModel), aliases::delete),
        //
        Route::new("POST", "model-versions/create", Update(RegisteredModel), versions::create),
        Route::new("GET", "model-versions/get", Read(RegisteredModel), versions::get),
        Route::new("GET", "model-versions/get-download-uri", Read(RegisteredModel), versions::download_uri),
        Route::new("GET", "/model-versions/get-artifact", Read(RegisteredModel), versions::get_artifact)
            .under(Paths::Bare),
        Route::new("GET", "model-versions/search", List(RegisteredModel), versions::search),
        Route::new("PATCH", "model-versions/update", Update(RegisteredModel), versions::update),
        Route::new("POST", "model-versions/transition-stage", Update(RegisteredModel), versions::transition_stage),
        Route::new("DELETE", "model-versions/delete", Delete(RegisteredModel), versions::delete),
        Route::new("POST", "model-versions/set-tag", Update(RegisteredModel), versions::set_tag),
        Route::new("DELETE", "model-versions/delete-tag", Update(RegisteredModel), versions::delete_tag),
    ]
}
