//! Pages of the records of an evaluation dataset.

use std::fmt::Write;

use entities::attributes::{CREATED_BY, UPDATED, UPDATED_BY};
use key_schema::{Key, KeyRange, ranges, rows};
use mlflow_api::evaluation_datasets::DatasetRecords;
use mlflow_api::{DatasetRecordId, Error, EvaluationDatasetId, Json, Result};
use search::{Fingerprint, decode_page_token, encode_page_token};
use table::{Item, Query};

use super::item::{AskedDataset, part_key};
use crate::store::Store;

/// Bytes of records on a page, beyond which it ends early: a function's answer may have 6 MB.
const PAGE_BYTES: usize = 4 << 20;

impl Store {
    /// A page of the records of an evaluation dataset, in the order of their creation; none, if there is no such dataset. One
    /// request per MB of what is kept of them, and one per hundred parts of big ones.
    ///
    /// A page that begins at the beginning is not one of a dataset that is gone. One that follows another may be, until the indexer
    /// has cleared up.
    pub async fn dataset_records(&self, id: &AskedDataset, max_results: usize, token: &str) -> Result<DatasetRecords> {
        let search = Fingerprint::of_dataset_records(&id.text);
        let after = decode_page_token::<String>(search, token)?;
        let none = DatasetRecords { records: "[]".to_owned(), next_page_token: None };
        let Some(dataset) = id.dataset.as_deref().cloned() else { return Ok(none) };
        let (items, is_more) = match after {
            None => {
                let range = ranges::evaluation_dataset_with_records(&dataset);
                let (mut items, is_more) = self.dataset_records_within(range, max_results, 1).await?;
                let dataset_key = Some(rows::EvaluationDataset::key(&dataset));
                if items.first().map(Item::key) != Some(dataset_key) {
                    return Ok(none);
                }
                items.remove(0);
                (items, is_more)
            }
            Some(record) => {
                let record = DatasetRecordId::parse(&record).ok_or_else(|| Error::invalid("Invalid page token"))?;
                let range = rows::EvaluationRecord::all(&dataset).after(&record);
                self.dataset_records_within(range, max_results, 0).await?
            }
        };
        let last = items.last().and_then(Item::key).and_then(|key| rows::EvaluationRecord::parse(&key));
        let last = last.filter(|_| is_more).map(|row| encode_page_token(search, &row.record.as_str())).transpose()?;
        Ok(DatasetRecords { records: self.dataset_records_json(&dataset, items).await?, next_page_token: last })
    }

    /// Up to `max` records of a range and the `others` that stand before them, and whether there are more.
    async fn dataset_records_within(&self, range: KeyRange, max: usize, others: usize) -> Result<(Vec<Item>, bool)> {
        let wanted = max.saturating_add(others);
        let mut query = Query::of(range);
        let mut items: Vec<Item> = Vec::new();
        let mut bytes = 0;
        loop {
            let page = self.table.query_page(&query.clone().limit((wanted - items.len()).saturating_add(1))).await?;
            for item in page.items {
                bytes += content::size(&item);
                if items.len() == wanted || (bytes > PAGE_BYTES && items.len() > others) {
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

    /// Records as MLflow's answer has them, a JSON array.
    async fn dataset_records_json(&self, dataset: &EvaluationDatasetId, items: Vec<Item>) -> Result<String> {
        let part_keys: Vec<Vec<Key>> = items.iter().map(|item| content::part_keys(item, part_key(dataset))).collect();
        let parts = self.table.get_many(&part_keys.concat()).await?;
        let mut json = String::from("[");
        for (item, part_keys) in items.into_iter().zip(&part_keys) {
            let found = match content::unpack(&item, part_keys, &parts) {
                None => content::read_with_item(&self.table, item, part_key(dataset)).await?,
                Some(content) => Some((item, content)),
            };
            // One that was deleted meanwhile is left out.
            let Some((item, content)) = found else { continue };
            json.push_str(if json.len() > 1 { ", " } else { "" });
            write_record(dataset, &item, &content, &mut json);
        }
        json.push(']');
        Ok(json)
    }
}

/// Appends a record. Its content is JSON of MLflow's form already, and need not be read.
fn write_record(dataset: &EvaluationDatasetId, item: &Item, content: &str, json: &mut String) {
    let row = item.key().and_then(|key| rows::EvaluationRecord::parse(&key));
    let (id, created) = row.map(|row| (row.record.to_string(), row.record.created())).unwrap_or_default();
    let updated = item.number(UPDATED).unwrap_or(created);
    let fields = content.strip_prefix('{').and_then(|content| content.strip_suffix('}')).unwrap_or_default();
    // Writing to a string does not fail.
    let _ = write!(
        json,
        "{{\"dataset_record_id\": \"{id}\", \"dataset_id\": \"{dataset}\", {fields}, \"created_time\": {created}, \
         \"last_update_time\": {updated}"
    );
    for (name, attribute) in [("created_by", CREATED_BY), ("last_updated_by", UPDATED_BY)] {
        if let Some(user) = item.text(attribute) {
            let _ = write!(json, ", \"{name}\": {}", Json::from(user).print());
        }
    }
    json.push('}');
}
