//! Logged models: their locations, and their items.

use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, KeyRange, WideDigest, index, rows};
use mlflow_api::logged_models::{LoggedModel, ModelData, ModelInfo, ModelMetric, ModelStatus};
use mlflow_api::tracking::KeyValue;
use mlflow_api::{Error, ExperimentId, ModelId, Result};
use table::{Item, Query, Table, Value};

use crate::attributes::{
    ARTIFACT_URI, Attribute, CREATED, MODEL_STATUS, MODEL_TYPE, NAME, Number, PARAM_ROWS, PARAMS, POINTS, SEGMENTS,
    SOURCE_RUN, TAG_ROWS, TAGS, Text, UPDATED, metric_of,
};
use crate::logged_model_points::{ModelPoint, ModelSeries, pack_model_segments, unpack_model_segment};
use crate::param_and_tag_maps::entries;
use crate::unreadable_item::unreadable;

/// Number of models whose rows are read concurrently.
const CONCURRENCY: usize = 16;

/// Location of a logged model: its experiment and its ID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelLocation {
    /// Experiment of the model.
    pub experiment: ExperimentId,
    /// ID of the model.
    pub model: ModelId,
}

impl ModelLocation {
    /// Returns the key of the model's document.
    #[must_use]
    pub fn key(&self) -> Key {
        rows::LoggedModel::key(&self.experiment, &self.model)
    }

    /// Returns the key of the model's metrics document.
    #[must_use]
    pub fn metrics_key(&self) -> Key {
        rows::LoggedModelMetrics::key(&self.experiment, &self.model)
    }

    /// Returns MLflow's error for a logged model that does not exist.
    #[must_use]
    pub fn not_found(&self) -> Error {
        ModelId::not_found(self.model.as_str())
    }

    /// Packs points into segments of the model. Each segment is an item.
    #[must_use]
    pub fn segments(&self, series: &ModelSeries) -> Vec<Item> {
        let segments = pack_model_segments(series).into_iter().map(|packed| {
            let key = rows::LoggedModelSegment::key(&self.model, &WideDigest::of_bytes(&packed));
            Item::new(key).with(POINTS, Value::B(packed.into()))
        });
        segments.collect()
    }
}

/// Locates a logged model. Returns `None` if the text is not a possible model ID, or no such model
/// is found. IDs that this server generated contain the experiment, so they take no request. Other
/// IDs take one request to a global index, which is eventually consistent.
pub async fn locate_model(table: &Table, text: &str) -> table::Result<Option<ModelLocation>> {
    let Some(model) = ModelId::parse(text) else { return Ok(None) };
    if let Some(experiment) = model.experiment() {
        return Ok(Some(ModelLocation { experiment, model }));
    }
    let page = table.query_page(&Query::of(index::LoggedModelLocation::all(&model)).limit(1)).await?;
    let row = page.items.first().and_then(Item::key).and_then(|key| rows::LoggedModel::parse(&key));
    Ok(row.map(|row| ModelLocation { experiment: row.experiment, model }))
}

/// The items of one logged model.
#[derive(Clone, Debug, Default)]
pub struct ModelItems {
    /// The model's document.
    pub model: Item,
    /// The model's metrics document, if it has one.
    pub metrics: Option<Item>,
    /// Rows of params.
    pub params: Vec<Item>,
    /// Rows of tags.
    pub tags: Vec<Item>,
    /// Segments of points.
    pub segments: Vec<Item>,
}

impl ModelItems {
    /// Returns the approximate total size of the items in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let rows = [&self.params, &self.tags, &self.segments];
        let documents = std::iter::once(&self.model).chain(&self.metrics);
        documents.chain(rows.into_iter().flatten()).map(Item::size).sum()
    }

    /// Returns all points of the model by metric, with the points of each metric sorted by time. A
    /// point that is stored both in the metrics document and in a segment is returned once.
    ///
    /// # Errors
    /// Returns an internal error if a point cannot be read.
    pub fn series(&self) -> Result<ModelSeries> {
        let mut series = self.metrics.as_ref().map_or_else(|| Ok(ModelSeries::new()), waiting_model_points)?;
        for segment in &self.segments {
            let read = packed_points(segment).and_then(|packed| unpack_model_segment(packed, &mut series));
            read.ok_or_else(|| unreadable(segment, "a segment of points"))?;
        }
        for points in series.values_mut() {
            points.sort_unstable();
            points.dedup();
        }
        Ok(series)
    }
}

/// Returns the packed points of a segment, or `None` if they do not match the hash in its key.
fn packed_points(segment: &Item) -> Option<&[u8]> {
    let packed = segment.bytes(POINTS)?;
    let row = rows::LoggedModelSegment::parse(&segment.key()?)?;
    (row.points == WideDigest::of_bytes(packed)).then_some(packed)
}

/// Returns the points in a model's metrics document by metric, in no particular order. These are
/// the points that are not in a segment yet.
///
/// # Errors
/// Returns an internal error if a point cannot be read.
pub fn waiting_model_points(document: &Item) -> Result<ModelSeries> {
    let metrics = document.0.iter().filter_map(|(name, value)| Some((metric_of(name)?, value)));
    let read = |set: &Value| {
        set.as_bs().ok()?.iter().map(|bytes| ModelPoint::unpack(bytes.as_ref())).collect::<Option<Vec<_>>>()
    };
    metrics
        .map(|(name, set)| Ok((name.to_owned(), read(set).ok_or_else(|| unreadable(document, "a metric"))?)))
        .collect()
}

/// Reads the segments of a logged model's points. Takes one request per MB, and none if the model
/// has no segments.
pub async fn read_model_segments(
    table: &Table,
    at: &ModelLocation,
    metrics: Option<&Item>,
) -> table::Result<Vec<Item>> {
    if metrics.is_none_or(|document| !document.has(SEGMENTS)) {
        return Ok(Vec::new());
    }
    table.query(Query::of(rows::LoggedModelSegment::all(&at.model))).await
}

/// Reads several logged models with all their items. Models that no longer exist are left out.
/// Takes one request per 50 models, and one more for each kind of row that a model has.
pub async fn read_models(table: &Table, places: &[ModelLocation]) -> table::Result<Vec<(ModelLocation, ModelItems)>> {
    let keys: Vec<Key> = places.iter().flat_map(|at| [at.key(), at.metrics_key()]).collect();
    let mut items = table.get_many(&keys).await?;
    let whole = places.iter().filter_map(|at| {
        let model = items.remove(&at.key())?;
        let metrics = items.remove(&at.metrics_key());
        Some(async move { Ok::<_, table::Failure>((at.clone(), read_model_items(table, at, model, metrics).await?)) })
    });
    stream::iter(whole.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await
}

/// Groups the items of the logged models in a partition by model. `unfinished` contains the items
/// of the last model of the previous page, to which the first items may belong. A model's document
/// comes first among its items. Items whose model has no document are left out.
///
/// # Errors
/// Returns an internal error if a model's key cannot be read.
pub fn group_by_model(
    experiment: ExperimentId,
    unfinished: Option<(ModelLocation, ModelItems)>,
    items: Vec<Item>,
) -> Result<Vec<(ModelLocation, ModelItems)>> {
    let mut groups: Vec<(ModelLocation, ModelItems)> = unfinished.into_iter().collect();
    let mut rows = groups.last().map(|(at, _)| ModelRowKeys::of(at));
    for item in items {
        let Some(key) = item.key() else { continue };
        if let Some(row) = rows::LoggedModel::parse(&key) {
            let at = ModelLocation { experiment, model: row.model };
            rows = Some(ModelRowKeys::of(&at));
            groups.push((at, ModelItems { model: item, ..ModelItems::default() }));
            continue;
        }
        let (Some(rows), Some((_, group))) = (&rows, groups.last_mut()) else { continue };
        if key == rows.metrics {
            group.metrics = Some(item);
        } else if rows.params.contains(&key) {
            group.params.push(item);
        } else if rows.tags.contains(&key) {
            group.tags.push(item);
        }
    }
    Ok(groups)
}

/// Keys of a logged model's rows other than its document.
struct ModelRowKeys {
    metrics: Key,
    params: KeyRange,
    tags: KeyRange,
}

impl ModelRowKeys {
    fn of(at: &ModelLocation) -> Self {
        Self {
            metrics: at.metrics_key(),
            params: rows::LoggedModelParam::all(&at.experiment).model(&at.model).range(),
            tags: rows::LoggedModelTag::all(&at.experiment).model(&at.model).range(),
        }
    }
}

/// Reads a logged model's rows other than its two documents. Takes one request for each kind of row
/// that it has, and one per MB of points.
pub async fn read_model_items(
    table: &Table,
    at: &ModelLocation,
    model: Item,
    metrics: Option<Item>,
) -> table::Result<ModelItems> {
    let has_segments = metrics.as_ref().is_some_and(|document| document.has(SEGMENTS));
    let rows = ModelRowKeys::of(at);
    let wanted = [
        (has_segments, rows::LoggedModelSegment::all(&at.model).range()),
        (model.has(PARAM_ROWS), rows.params),
        (model.has(TAG_ROWS), rows.tags),
    ];
    let queries = wanted.map(|(wanted, range)| async move {
        if wanted { table.query(Query::of(range)).await } else { Ok(Vec::new()) }
    });
    let mut parts = try_join_all(queries).await?.into_iter();
    let mut part = || parts.next().unwrap_or_default();
    Ok(ModelItems { model, metrics, segments: part(), params: part(), tags: part() })
}

/// Builds a logged model from its items.
///
/// # Errors
/// Returns an internal error if a part of the model cannot be read.
pub fn model_whole(at: &ModelLocation, items: &ModelItems) -> Result<LoggedModel> {
    let text = |attribute: Attribute<Text>| items.model.get(attribute).unwrap_or_default().to_owned();
    let number = |attribute: Attribute<Number>| items.model.get(attribute).unwrap_or_default();
    let key_values = |attribute, rows| {
        let entries = entries(&items.model, attribute, rows)?.into_iter();
        Ok::<Vec<_>, Error>(entries.map(|(key, value)| KeyValue { key, value }).collect())
    };
    let metrics = items.series()?.into_iter().flat_map(|(key, points)| {
        points.into_iter().map(move |point| {
            let (dataset_name, dataset_digest) = point.dataset.unwrap_or_default();
            ModelMetric {
                key: key.clone(),
                value: point.value,
                timestamp: point.timestamp,
                step: point.step,
                dataset_name,
                dataset_digest,
                model_id: at.model.to_string(),
                run_id: point.run,
            }
        })
    });
    let info = ModelInfo {
        model_id: at.model.to_string(),
        experiment_id: at.experiment.to_string(),
        name: text(NAME),
        creation_timestamp_ms: number(CREATED),
        last_updated_timestamp_ms: number(UPDATED),
        artifact_uri: text(ARTIFACT_URI),
        status: ModelStatus::from_number(items.model.get(MODEL_STATUS).unwrap_or_default()),
        model_type: text(MODEL_TYPE),
        source_run_id: text(SOURCE_RUN),
        tags: key_values(TAGS, &items.tags)?,
    };
    let data = ModelData { params: key_values(PARAMS, &items.params)?, metrics: metrics.collect() };
    Ok(LoggedModel { info, data })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric_attribute;
    use table::{bytes_set, text};

    fn at(chance: u32) -> ModelLocation {
        let experiment = ExperimentId::DEFAULT;
        ModelLocation { experiment, model: ModelId::new(1_700_000_000_000, experiment, chance) }
    }

    fn point(step: i64) -> ModelPoint {
        ModelPoint::new(1, step, 0.5, "r", None)
    }

    /// After a crash, points that were being sealed may be both in the metrics document and in a
    /// segment.
    #[test]
    fn a_point_that_stands_in_two_places_is_one() {
        let at = at(1);
        let segments = at.segments(&ModelSeries::from([("m".to_owned(), vec![point(2), point(1), point(1)])]));
        let waiting = bytes_set([point(3), point(1)].map(|point| point.pack()));
        let metrics = Item::new(at.metrics_key()).with(metric_attribute("m"), waiting);
        let items = ModelItems { metrics: Some(metrics), segments, ..ModelItems::default() };
        assert_eq!(items.series().unwrap(), ModelSeries::from([("m".to_owned(), vec![point(1), point(2), point(3)])]));
    }

    #[test]
    fn items_are_grouped_across_pages() {
        let (one, two) = (at(1), at(2));
        let param = rows::LoggedModelParam::key(&two.experiment, &two.model, &"p #".into());
        let tag = rows::LoggedModelTag::key(&two.experiment, &two.model, &"t".into());
        let first = [one.key(), one.metrics_key(), two.key()].map(Item::new).to_vec();
        let mut groups = group_by_model(ExperimentId::DEFAULT, None, first).unwrap();
        let unfinished = groups.pop();
        assert_eq!(groups.len(), 1);
        assert_eq!((&groups[0].0, groups[0].1.metrics.is_some()), (&one, true));
        let second = [param, tag].map(|key| Item::new(key).with(NAME, text("x"))).to_vec();
        let groups = group_by_model(ExperimentId::DEFAULT, unfinished, second).unwrap();
        assert_eq!(groups.len(), 1);
        assert_eq!((&groups[0].0, groups[0].1.params.len(), groups[0].1.tags.len()), (&two, 1, 1));
        // A row belongs to no model if its document no longer exists.
        let orphan = Item::new(one.metrics_key());
        assert!(group_by_model(ExperimentId::DEFAULT, None, vec![orphan]).unwrap().is_empty());
    }
}
