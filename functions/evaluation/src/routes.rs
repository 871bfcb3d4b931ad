//! The route table: method, path, permission, handler.

use access::Permission::{Create, Delete, List, Read, Update};
use access::Resource::{EvaluationDataset, Experiment};
use service::{Paths, Route};

use crate::store::Store;
use crate::{datasets, scorers};

/// The rows of this function.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    vec![
        Route::new("POST", "datasets/create", Create(EvaluationDataset), datasets::create).under(Paths::V3),
        Route::new("GET", "datasets/search", List(EvaluationDataset), datasets::search).under(Paths::V3),
        Route::new("POST", "datasets/search", List(EvaluationDataset), datasets::search).under(Paths::V3),
        Route::new("GET", "datasets/{dataset_id}", Read(EvaluationDataset), datasets::get).under(Paths::V3),
        Route::new("DELETE", "datasets/{dataset_id}", Delete(EvaluationDataset), datasets::delete).under(Paths::V3),
        Route::new("PATCH", "datasets/{dataset_id}/tags", Update(EvaluationDataset), datasets::set_tags)
            .under(Paths::V3),
        Route::new("DELETE", "datasets/{dataset_id}/tags/{key}", Update(EvaluationDataset), datasets::delete_tag)
            .under(Paths::V3),
        Route::new("POST", "datasets/{dataset_id}/records", Update(EvaluationDataset), datasets::merge_records)
            .under(Paths::V3),
        Route::new("GET", "datasets/{dataset_id}/records", Read(EvaluationDataset), datasets::records).under(Paths::V3),
        Route::new("DELETE", "datasets/{dataset_id}/records", Update(EvaluationDataset), datasets::delete_records)
            .under(Paths::V3),
        Route::new("GET", "datasets/{dataset_id}/experiment-ids", Read(EvaluationDataset), datasets::experiments)
            .under(Paths::V3),
        Route::new(
            "POST",
            "datasets/{dataset_id}/add-experiments",
            Update(EvaluationDataset),
            datasets::add_experiments,
        )
        .under(Paths::V3),
        Route::new(
            "POST",
            "datasets/{dataset_id}/remove-experiments",
            Update(EvaluationDataset),
            datasets::remove_experiments,
        )
        .under(Paths::V3),
        //
        Route::new("POST", "scorers/register", Update(Experiment), scorers::register).under(Paths::V3),
        Route::new("GET", "scorers/list", List(Experiment), scorers::list).under(Paths::V3),
        Route::new("GET", "scorers/versions", Read(Experiment), scorers::versions).under(Paths::V3),
        Route::new("GET", "scorers/get", Read(Experiment), scorers::get).under(Paths::V3),
        Route::new("DELETE", "scorers/delete", Delete(Experiment), scorers::delete).under(Paths::V3),
        Route::new("PUT", "scorers/online-config", Update(Experiment), scorers::set_online_config).under(Paths::V3),
        Route::new("GET", "scorers/online-configs", List(Experiment), scorers::online_configs).under(Paths::V3),
    ]
}
