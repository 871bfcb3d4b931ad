//! A run's inputs and outputs, which are rows next to its document.

use key_schema::{Key, WideDigest, rows};
use mlflow_api::inputs::{Dataset, DatasetInput, ModelInput, RunInputs};
use mlflow_api::tracking::{KeyValue, ModelOutput, RunOutputs};
use mlflow_api::{ExperimentId, Result};
use table::{Item, Map, Value, map, text};

use crate::attributes::{DIGEST, MODEL, NAME, ORDER, STEP, TAGS};
use crate::param_and_tag_maps::{entry_key, entry_name};
use crate::unreadable_item::unreadable;

/// Returns the hash of a dataset's name and digest. The dataset's key and its index entries contain
/// this hash.
#[must_use]
pub fn dataset_digest(name: &str, digest: &str) -> WideDigest {
    WideDigest::of(&[name, digest])
}

/// Returns the key of a dataset.
#[must_use]
pub fn dataset_key(experiment: ExperimentId, name: &str, digest: &str) -> Key {
    rows::Dataset::key(&experiment, &dataset_digest(name, digest))
}

/// Checks whether an item is the dataset with this name and digest. The check is necessary because
/// the item's key contains only their hash.
#[must_use]
pub fn is_dataset(item: &Item, name: &str, digest: &str) -> bool {
    item.get(NAME) == Some(name) && item.get(DIGEST) == Some(digest)
}

/// Builds the row of a dataset input: the dataset's name and digest, and the tags of this use.
/// `order` is greater for later inputs.
#[must_use]
pub fn dataset_link(row: Item, input: &DatasetInput, order: i64) -> Item {
    let tags: Map = input.tags.iter().map(|tag| (entry_name(&tag.key).into_owned(), text(&tag.value))).collect();
    row.with(NAME, text(&input.dataset.name))
        .with(DIGEST, text(&input.dataset.digest))
        .with(TAGS, map(tags))
        .with(ORDER, table::number(order))
}

/// Reads a run's inputs from its rows. Datasets have only their name and digest, and are in the
/// order in which they were logged.
///
/// # Errors
/// Returns an internal error if a row cannot be read.
pub fn run_inputs(links: &[Item]) -> Result<RunInputs> {
    let (mut datasets, mut model_inputs) = (Vec::new(), Vec::new());
    for row in links {
        match row.get(MODEL) {
            Some(model_id) if !row.has(STEP) => model_inputs.push(ModelInput { model_id: model_id.to_owned() }),
            Some(_) => {}
            None => datasets.push(dataset_input(row).ok_or_else(|| unreadable(row, "a dataset of a run"))?),
        }
    }
    datasets.sort_by_key(|(order, _)| *order);
    Ok(RunInputs { dataset_inputs: datasets.into_iter().map(|(_, input)| input).collect(), model_inputs })
}

fn dataset_input(row: &Item) -> Option<(i64, DatasetInput)> {
    let dataset =
        Dataset { name: row.get(NAME)?.to_owned(), digest: row.get(DIGEST)?.to_owned(), ..Dataset::default() };
    let tags = row.map(TAGS)?.iter();
    let tags =
        tags.map(|(name, value)| Some(KeyValue { key: entry_key(name).to_owned(), value: value.as_s().ok()?.clone() }));
    let mut tags = tags.collect::<Option<Vec<_>>>()?;
    tags.sort_unstable();
    Some((row.get(ORDER)?, DatasetInput { tags, dataset }))
}

/// Reads a run's outputs from its rows.
///
/// # Errors
/// Returns an internal error if a row cannot be read.
pub fn run_outputs(links: &[Item]) -> Result<RunOutputs> {
    let models = links.iter().filter(|row| row.has(MODEL) && row.has(STEP)).map(|row| {
        let output = || Some(ModelOutput { model_id: row.get(MODEL)?.to_owned(), step: row.get(STEP)? });
        output().ok_or_else(|| unreadable(row, "a model of a run"))
    });
    Ok(RunOutputs { model_outputs: models.collect::<Result<_>>()? })
}

/// Returns the rows in the form that copies store. Their keys are left out, because they follow
/// from the other attributes.
pub(crate) fn kept(links: &[Item]) -> Value {
    let kept = |row: &Item| {
        let attributes = [MODEL.name(), STEP.name(), NAME.name(), DIGEST.name(), TAGS.name(), ORDER.name()].into_iter();
        map(attributes.filter_map(|name| Some((name.to_owned(), row.0.get(name)?.clone()))).collect())
    };
    Value::L(links.iter().map(kept).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(sk: &str) -> Item {
        Item::new(Key { pk: "P".to_owned(), sk: sk.to_owned() })
    }

    fn input(name: &str, tags: &[(&str, &str)]) -> DatasetInput {
        let tags = tags.iter().map(|(key, value)| KeyValue { key: (*key).to_owned(), value: (*value).to_owned() });
        let dataset = Dataset { name: name.to_owned(), digest: "d".to_owned(), ..Dataset::default() };
        DatasetInput { tags: tags.collect(), dataset }
    }

    #[test]
    fn links_come_back_in_the_order_they_were_logged() {
        let (first, second) = (input("z", &[]), input("a", &[("", "empty"), ("mlflow.data.context", "train")]));
        let links = [
            dataset_link(row("1"), &second, 2),
            dataset_link(row("2"), &first, 1),
            row("3").with(MODEL, text("m-1")).with(STEP, table::number(7)),
            row("4").with(MODEL, text("m-2")),
        ];
        let inputs = run_inputs(&links).unwrap();
        assert_eq!(inputs.dataset_inputs, [first, second]);
        assert_eq!(inputs.dataset_inputs[1].context(), Some("train"));
        assert_eq!(inputs.model_inputs, [ModelInput { model_id: "m-2".to_owned() }]);
        assert_eq!(run_outputs(&links).unwrap().model_outputs, [ModelOutput { model_id: "m-1".to_owned(), step: 7 }]);
        let Value::L(kept) = kept(&links) else { panic!("a list") };
        let kept: Vec<_> = kept.iter().map(|row| Item(row.as_m().unwrap().clone())).collect();
        assert_eq!(run_inputs(&kept).unwrap(), inputs);
        assert_eq!(run_outputs(&kept).unwrap(), run_outputs(&links).unwrap());
        assert!(run_inputs(&[row("5")]).is_err(), "a row of an unknown kind");
        assert!(run_outputs(&[row("6").with(MODEL, text("m-1")).with(STEP, text("x"))]).is_err());
    }

    #[test]
    fn datasets_are_told_apart_by_name_and_digest() {
        assert_ne!(dataset_digest("ab", "c"), dataset_digest("a", "bc"));
        assert_ne!(dataset_digest("", "a"), dataset_digest("a", ""));
    }
}
