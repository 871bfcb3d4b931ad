//! The route table: method, path, permission, handler.

use access::Permission::{Create, Delete, List, Read, Update};
use access::Resource::{EvaluationDataset, Experiment, Scorer};
use service::{Paths, Route};

use crate::store::Store;
use crate::{datasets, scorers};

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    vec![
        Route::to::<datasets::Create>("POST", "datasets/create", Create(EvaluationDataset)).under(Paths::V3),
        Route::to::<datasets::Search>("GET", "datasets/search", Read(EvaluationDataset)).under(Paths::V3),
        Route::to::<datasets::Search>("POST", "datasets/search", Read(EvaluationDataset)).under(Paths::V3),
        Route::to::<datasets::Get>("GET", "datasets/{dataset_id}", Read(EvaluationDataset)).under(Paths::V3),
        Route::to::<datasets::Delete>("DELETE", "datasets/{dataset_id}", Delete(EvaluationDataset)).under(Paths::V3),
        Route::to::<datasets::SetTags>("PATCH", "datasets/{dataset_id}/tags", Update(EvaluationDataset))
            .under(Paths::V3),
        Route::to::<datasets::DeleteTag>("DELETE", "datasets/{dataset_id}/tags/{key}", Update(EvaluationDataset))
            .under(Paths::V3),
        Route::to::<datasets::MergeRecords>("POST", "datasets/{dataset_id}/records", Update(EvaluationDataset))
            .under(Paths::V3),
        Route::to::<datasets::Records>("GET", "datasets/{dataset_id}/records", Read(EvaluationDataset))
            .under(Paths::V3),
        Route::to::<datasets::DeleteRecords>("DELETE", "datasets/{dataset_id}/records", Update(EvaluationDataset))
            .under(Paths::V3),
        Route::to::<datasets::Experiments>("GET", "datasets/{dataset_id}/experiment-ids", Read(EvaluationDataset))
            .under(Paths::V3),
        Route::to::<datasets::AddExperiments>(
            "POST",
            "datasets/{dataset_id}/add-experiments",
            Update(EvaluationDataset),
        )
        .under(Paths::V3),
        Route::to::<datasets::RemoveExperiments>(
            "POST",
            "datasets/{dataset_id}/remove-experiments",
            Update(EvaluationDataset),
        )
        .under(Paths::V3),
        //
        Route::to::<scorers::Register>("POST", "scorers/register", Create(Scorer)).under(Paths::V3),
        Route::to::<scorers::List>("GET", "scorers/list", List(Scorer)).under(Paths::V3),
        Route::to::<scorers::Versions>("GET", "scorers/versions", Read(Scorer)).under(Paths::V3),
        Route::to::<scorers::Get>("GET", "scorers/get", Read(Scorer)).under(Paths::V3),
        Route::to::<scorers::Delete>("DELETE", "scorers/delete", Delete(Scorer)).under(Paths::V3),
        Route::to::<scorers::SetOnlineConfig>("PUT", "scorers/online-config", Update(Experiment)).under(Paths::V3),
        Route::to::<scorers::OnlineConfigs>("GET", "scorers/online-configs", Read(Scorer)).under(Paths::V3),
    ]
}
