//! Pages of the records of an evaluation dataset.

use entities::documents::content;
use std::fmt::Write;

use entities::attributes::{CREATED_BY, UPDATED, UPDATED_BY};
use key_schema::{Key, KeyRange, ranges, rows};
use mlflow_api::evaluation_datasets::DatasetRecordsResponse;
use mlflow_api::response_size::{MAX_JSON_BYTES, MAX_PAGE_BYTES, MAX_PAGE_JSON_BYTES, ResponseSize, too_long};
use mlflow_api::{DatasetRecordId, Error, EvaluationDatasetId, Json, Result};
use search::{Fingerprint, decode_page_token, encode_page_token};
use serde_json::value::RawValue;
use table::{Item, Query};

use super::dataset_item::{DatasetReference, part_key};
use crate::store::Store;

/// Lower bound of a record's size in a response in addition to its content, in bytes.
const MIN_RECORD_OVERHEAD: usize = 160;

impl Store {
    /// Returns a page of the records of an evaluation dataset, in order of creation. The page is
    /// empty if the dataset does not exist. Takes one request per MB of items, and one per hundred
    /// parts of large records.
    ///
    /// The first page never shows records of a deleted dataset. Later pages may show them until the
    /// indexer has removed the records.
    ///
    /// # Errors
    /// Returns an error if the first record exceeds the maximum size of a response.
    pub async fn dataset_records(
        &self,
        id: &DatasetReference,
        max_results: usize,
        token: &str,
    ) -> Result<DatasetRecordsResponse> {
        let search = Fingerprint::of_dataset_records(&id.text);
        let after = decode_page_token::<String>(search, token)?;
        let Some(dataset) = id.dataset.as_deref().cloned() else { return RecordsPage::default().page(None) };
        let (mut range, mut others) = match after {
            None => (ranges::evaluation_dataset_with_records(&dataset), 1),
            Some(record) => {
                let record = DatasetRecordId::parse(&record).ok_or_else(|| Error::invalid("Invalid page token"))?;
                (rows::EvaluationRecord::all(&dataset).after(&record), 0)
            }
        };
        loop {
            let (mut items, is_more) = self.dataset_records_in_range(range, max_results, others).await?;
            if others > 0 {
                let dataset_key = Some(rows::EvaluationDataset::key(&dataset));
                if items.first().map(Item::key) != Some(dataset_key) {
                    return RecordsPage::default().page(None);
                }
                items.remove(0);
            }
            let (records, end) = self.dataset_records_page(&dataset, items).await?;
            let end = if is_more || records.is_full { end } else { None };
            match end {
                // All records that were read have been deleted in the meantime. Reading continues,
                // because a page must not be empty if more records follow.
                Some(end) if records.is_empty() => range = rows::EvaluationRecord::all(&dataset).after(&end),
                end => {
                    let token = end.map(|end| encode_page_token(search, &end.as_str())).transpose()?;
                    return records.page(token);
                }
            }
            others = 0;
        }
    }

    /// Reads up to `max` records of a range, which begins with `others` items that are not records.
    /// Stops early once the records exceed the size of a page. Returns the items, including the
    /// `others`, and whether more records follow.
    async fn dataset_records_in_range(&self, range: KeyRange, max: usize, others: usize) -> Result<(Vec<Item>, bool)> {
        let wanted = max.saturating_add(others);
        let mut query = Query::of(range);
        let mut items: Vec<Item> = Vec::new();
        let mut bytes = 0;
        loop {
            let page = self.table.query_page(&query.clone().limit((wanted - items.len()).saturating_add(1))).await?;
            for item in page.items {
                bytes += if items.len() < others { 0 } else { content::size(&item) + MIN_RECORD_OVERHEAD };
                if items.len() == wanted || (bytes > MAX_PAGE_JSON_BYTES && items.len() > others) {
                    return Ok((items, true));
                }
                items.push(item);
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok((items, false)),
            }
        }
    }

    /// Returns as many of these records as fit on a page, and the id of the last one that was
    /// examined. Decompresses one record at a time, which bounds the memory.
    async fn dataset_records_page(
        &self,
        dataset: &EvaluationDatasetId,
        items: Vec<Item>,
    ) -> Result<(RecordsPage, Option<DatasetRecordId>)> {
        if let Some(first) = items.first().filter(|first| content::size(first) > MAX_JSON_BYTES) {
            let record = record_id(first).map(|id| id.to_string()).unwrap_or_default();
            return Err(too_long(&format!("The record '{record}'"), MAX_JSON_BYTES));
        }
        let part_keys: Vec<Vec<Key>> = items.iter().map(|item| content::part_keys(item, part_key(dataset))).collect();
        let mut parts = self.table.get_many(&part_keys.concat()).await?;
        let (mut records, mut end) = (RecordsPage::default(), None);
        for (item, part_keys) in items.into_iter().zip(&part_keys) {
            let id = record_id(&item);
            let found = match content::unpack(&item, part_keys, &parts) {
                None => content::read_with_item(&self.table, item, part_key(dataset)).await?,
                Some(content) => Some((item, content)),
            };
            for key in part_keys {
                parts.remove(key);
            }
            // Records that were deleted in the meantime are skipped.
            if let Some((item, content)) = found {
                let mut json = String::new();
                write_record(dataset, &item, &content, &mut json);
                drop(content);
                if !records.add(&json)? {
                    break;
                }
            }
            end = id;
        }
        Ok((records, end))
    }
}

/// The records of a page, as the elements of a JSON array that is escaped for a JSON string.
#[derive(Default)]
struct RecordsPage {
    escaped: String,
    size: ResponseSize,
    is_full: bool,
}

impl RecordsPage {
    /// Adds a record if it fits. The first record always fits. Returns whether the record was
    /// added.
    fn add(&mut self, json: &str) -> Result<bool> {
        let quoted = serde_json::to_string(json).map_err(Error::internal)?;
        let escaped = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default();
        let size = self.size + ResponseSize::of(escaped.as_bytes()) + ResponseSize::of_plain(2);
        self.is_full = !self.is_empty() && size.bytes_in_response() > MAX_PAGE_BYTES;
        if !self.is_full {
            self.escaped.push_str(if self.is_empty() { "" } else { ", " });
            self.escaped.push_str(escaped);
            self.size = size;
        }
        Ok(!self.is_full)
    }

    fn is_empty(&self) -> bool {
        self.escaped.is_empty()
    }

    /// Builds the response, with the token of the next page.
    fn page(self, next_page_token: Option<String>) -> Result<DatasetRecordsResponse> {
        let records = RawValue::from_string(format!("\"[{}]\"", self.escaped)).map_err(Error::internal)?;
        Ok(DatasetRecordsResponse { records, next_page_token })
    }
}

fn record_id(item: &Item) -> Option<DatasetRecordId> {
    item.key().and_then(|key| rows::EvaluationRecord::parse(&key)).map(|row| row.record)
}

/// Appends a record to the JSON of a page. The record's content is copied without being parsed,
/// because it is stored as JSON in the format of MLflow's response.
fn write_record(dataset: &EvaluationDatasetId, item: &Item, content: &str, json: &mut String) {
    let row = item.key().and_then(|key| rows::EvaluationRecord::parse(&key));
    let (id, created) = row.map(|row| (row.record.to_string(), row.record.created())).unwrap_or_default();
    let updated = item.get(UPDATED).unwrap_or(created);
    let fields = content.strip_prefix('{').and_then(|content| content.strip_suffix('}')).unwrap_or_default();
    // The result is ignored because writing to a string cannot fail.
    let _ = write!(
        json,
        "{{\"dataset_record_id\": \"{id}\", \"dataset_id\": \"{dataset}\", {fields}, \"created_time\": {created}, \
         \"last_update_time\": {updated}"
    );
    for (name, attribute) in [("created_by", CREATED_BY), ("last_updated_by", UPDATED_BY)] {
        if let Some(user) = item.get(attribute) {
            let _ = write!(json, ", \"{name}\": {}", Json::from(user).print());
        }
    }
    json.push('}');
}
