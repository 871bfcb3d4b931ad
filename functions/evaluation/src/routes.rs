//! The route table: method, path, permission, handler.

use access::Permission::{Create, Delete, List, Read, Update};
use access::Resource::{EvaluationDataset, Experiment, Issue, LabelSchema, ReviewQueue, Scorer};
use service::{Paths, Route};

use crate::store::Store;
use crate::{datasets, issues, label_schemas, review_queues, scorers};

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
        //
        Route::to::<label_schemas::Create>("POST", "label-schemas/create", Create(LabelSchema)).under(Paths::V3),
        Route::to::<label_schemas::Get>("GET", "label-schemas/get", Read(LabelSchema)).under(Paths::V3),
        Route::to::<label_schemas::GetByName>("GET", "label-schemas/get-by-name", Read(LabelSchema)).under(Paths::V3),
        Route::to::<label_schemas::List>("GET", "label-schemas/list", Read(LabelSchema)).under(Paths::V3),
        Route::to::<label_schemas::Modify>("PATCH", "label-schemas/update", Update(LabelSchema)).under(Paths::V3),
        Route::to::<label_schemas::Delete>("DELETE", "label-schemas/delete", Delete(LabelSchema)).under(Paths::V3),
        //
        Route::to::<review_queues::Create>("POST", "review-queues/create", Create(ReviewQueue)).under(Paths::V3),
        Route::to::<review_queues::GetOrCreateUser>("POST", "review-queues/get-or-create-user", Create(ReviewQueue))
            .under(Paths::V3),
        Route::to::<review_queues::Get>("GET", "review-queues/get", Read(ReviewQueue)).under(Paths::V3),
        Route::to::<review_queues::GetByName>("GET", "review-queues/get-by-name", Read(ReviewQueue)).under(Paths::V3),
        Route::to::<review_queues::List>("GET", "review-queues/list", Read(ReviewQueue)).under(Paths::V3),
        Route::to::<review_queues::Modify>("POST", "review-queues/update", Update(ReviewQueue)).under(Paths::V3),
        Route::to::<review_queues::Delete>("POST", "review-queues/delete", Update(ReviewQueue)).under(Paths::V3),
        Route::to::<review_queues::AddItems>("POST", "review-queues/items/add", Update(ReviewQueue)).under(Paths::V3),
        Route::to::<review_queues::RemoveItems>("POST", "review-queues/items/remove", Update(ReviewQueue))
            .under(Paths::V3),
        Route::to::<review_queues::ListItems>("GET", "review-queues/items/list", Read(ReviewQueue)).under(Paths::V3),
        Route::to::<review_queues::SetStatus>("POST", "review-queues/items/set-status", Update(ReviewQueue))
            .under(Paths::V3),
        //
        Route::to::<issues::Create>("POST", "issues", Create(Issue)).under(Paths::V3),
        Route::to::<issues::Search>("POST", "issues/search", Read(Issue)).under(Paths::V3),
        Route::to::<issues::Get>("GET", "issues/{issue_id}", Read(Issue)).under(Paths::V3),
        Route::to::<issues::Modify>("PATCH", "issues/{issue_id}", Update(Issue)).under(Paths::V3),
    ]
}
