//! Endpoints for the records of datasets.

use access::{Action, Needs, Scope};
use mlflow_api::evaluation_datasets::{DatasetRecordsResponse, DeleteRecordsResponse, MergeRecordsResponse};
use mlflow_api::requests::evaluation_datasets as message;
use mlflow_api::{Error, Json, Request, Result};
use service::Endpoint;

use super::lifecycle::json;
use crate::request_targets::DatasetTarget;
use crate::store::Store;

/// Page size for requests without `max_results`.
const DEFAULT_RECORDS: usize = 1_000;

pub(crate) struct MergeRecords {
    dataset: DatasetTarget,
    records: Json,
}

impl Endpoint for MergeRecords {
    type Store = Store;
    type Answer = MergeRecordsResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::UpsertDatasetRecords = request.read()?;
        Ok(Self { dataset: DatasetTarget::of(request), records: json("records", &message.records)? })
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Update, self.dataset.targets())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<MergeRecordsResponse> {
        store.dataset_merge_records(&self.dataset.granted(scope)?, self.records).await
    }
}

pub(crate) struct Records {
    dataset: DatasetTarget,
    max_results: usize,
    page_token: String,
}

impl Endpoint for Records {
    type Store = Store;
    type Answer = DatasetRecordsResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::GetDatasetRecords = request.read()?;
        let max_results = match message.max_results {
            0 => DEFAULT_RECORDS,
            results => usize::try_from(results).map_err(|_| {
                Error::invalid(format!(
                    "Invalid value {results} for parameter 'max_results' supplied. It must be a positive integer"
                ))
            })?,
        };
        Ok(Self { dataset: DatasetTarget::of(request), max_results, page_token: message.page_token })
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Read, self.dataset.targets())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<DatasetRecordsResponse> {
        store.dataset_records(&self.dataset.granted(scope)?, self.max_results, &self.page_token).await
    }
}

pub(crate) struct DeleteRecords {
    dataset: DatasetTarget,
    records: Vec<String>,
}

impl Endpoint for DeleteRecords {
    type Store = Store;
    type Answer = DeleteRecordsResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::DeleteDatasetRecords = request.read()?;
        Ok(Self { dataset: DatasetTarget::of(request), records: message.dataset_record_ids })
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Update, self.dataset.targets())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<DeleteRecordsResponse> {
        let dataset = self.dataset.granted(scope)?;
        Ok(DeleteRecordsResponse { deleted_count: store.dataset_delete_records(&dataset, &self.records).await? })
    }
}
