//! Estimates the cost of changing a setting, from the measured costs in
//! `docs/reference/capacity.md` and from the item counts that DynamoDB maintains for the table.
//! Most estimates read no entities. The exceptions are the estimate for deleted entities and the
//! estimate for the runs of a single experiment.

use artifact_store::ArtifactStore;
use entities::now_ms;
use entities::workspaces::Workspaces;
use key_schema::IndexEntry;
use key_schema::index::RunsByName;
use mlflow_api::TraceRetention;
use mlflow_api::proto_json::time_text;
use retention::{DeletionAge, RemovedEntity, Retention};
use run_index::RunIndex;
use table::Table;

use super::setting_holder::{SettingHolder, UNLIMITED, failed};
use super::settings::{SettingKind, TableSetting};
use crate::Failure;

/// Rows of `docs/reference/capacity.md` with their write units in a warm process. Together they are
/// the cost of indexing a run with 4 tags, 10 metrics and 5 params.
const INDEXING_COSTS: [(&str, u64); 3] = [("a new run, 4 tags", 12), ("its first 10 metrics", 13), ("5 params", 8)];
/// Upper bound of the write units for marking a run as changed.
const MARKING_UNITS: u64 = 2;
/// Row of `docs/reference/capacity.md` for finding and removing 100 runs, with its write units.
const REMOVAL_COST: (&str, u64) = ("find and remove 100 such runs", 3514);

/// Returns the number of write units that `reindex` takes per run.
fn reindex_units() -> u64 {
    MARKING_UNITS + INDEXING_COSTS.iter().map(|(_, writes)| writes).sum::<u64>()
}

/// Returns the number of write units that removing a run takes.
fn removal_units() -> u64 {
    REMOVAL_COST.1 / 100
}

/// Describes the cost of setting a value, in full sentences.
pub(super) async fn describe_cost(
    table: &Table,
    setting: &TableSetting,
    holder: &SettingHolder,
    value: &str,
) -> Result<String, Failure> {
    Ok(match setting.kind {
        SettingKind::DeletedRetention if value != UNLIMITED => {
            let age = DeletionAge::parse(value).map_err(failed)?;
            of_removal(deleted_before(table, age.before()).await?)
        }
        SettingKind::TraceRetention => of_traces(value, holder),
        SettingKind::IndexedValues | SettingKind::IndexedTexts => {
            if let SettingHolder::Experiment(id) = holder {
                return Ok(of_reindex_of(
                    RunIndex::new(table.clone()).count_runs(*id).await.map_err(|failure| format!("{failure:?}"))?,
                ));
            }
            of_reindex(table.count_of_index(RunsByName::INDEX.name).await.map_err(|error| format!("{error:?}"))?)
        }
        _ => format!("{}.", setting.cost),
    })
}

/// Numbers of entities that were deleted before the given time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DeletedCounts {
    runs: u64,
    models: u64,
    experiments: u64,
}

/// Counts entities deleted before `before`. Costs the requests of `gc --dry-run`.
async fn deleted_before(table: &Table, before: i64) -> Result<DeletedCounts, Failure> {
    let retention = Retention::new(table.clone(), ArtifactStore::default());
    let mut deleted = DeletedCounts::default();
    for workspace in Workspaces::new(table.clone()).names().await.map_err(failed)? {
        for entity in retention.deleted(&workspace, Some(before)).await.map_err(failed)?.entities() {
            match entity {
                RemovedEntity::Run(_) => deleted.runs += 1,
                RemovedEntity::LoggedModel(_) => deleted.models += 1,
                RemovedEntity::Experiment(_) => deleted.experiments += 1,
            }
        }
    }
    Ok(deleted)
}

fn of_removal(DeletedCounts { runs, models, experiments }: DeletedCounts) -> String {
    let units = runs * removal_units();
    format!(
        "Already past this retention: {runs} runs, {models} logged models, {experiments} experiments. `serve` or the stack begins to \
         remove them permanently within an hour. Removing these runs takes about {units} write units: {} write units for each run with \
         10 metrics, 5 params and 3 tags. An experiment is removed with all of its runs. `gc --dry-run --older-than` lists them.",
        removal_units()
    )
}

fn of_traces(value: &str, holder: &SettingHolder) -> String {
    let Some(since) = TraceRetention::parse(value).ok().and_then(|kept| kept.since(now_ms())) else {
        return "Nothing. Hidden traces that are not removed yet become visible again within a minute.".to_owned();
    };
    let whose = match holder {
        SettingHolder::Experiment(id) => format!("of experiment {id}"),
        _ => "of all experiments without a tag of their own".to_owned(),
    };
    format!(
        "Traces {whose} that began before {} are hidden within a minute. `serve` or the stack removes them a day at a time, for at least \
         one write unit per document and one per part of its spans.",
        time_text(since)
    )
}

fn of_reindex(runs: Option<u64>) -> String {
    let all = match runs {
        Some(runs) => format!(
            "About {} write units for {runs} runs that are not deleted, by the table's item count, which is up to six hours old. ",
            runs * reindex_units()
        ),
        None => String::new(),
    };
    all + &of_each_run()
}

fn of_reindex_of(runs: u64) -> String {
    format!("About {} write units for the {runs} runs of this experiment. ", runs * reindex_units()) + &of_each_run()
}

fn of_each_run() -> String {
    let per_run = reindex_units();
    format!(
        "The index is rebuilt: about {per_run} write units per run of 10 metrics, 5 params and 4 tags, plus one for each \
         further value and for each character of an indexed text. For three minutes, and until the rebuild is complete, searches do \
         not use the index for the fields of these settings. A local database has no capacity units; the rebuild only takes time."
    )
}

#[cfg(test)]
mod tests {
    use super::super::settings::{SETTINGS, TableSetting};
    use super::*;

    const PAGE: &str = include_str!("../../../docs/reference/capacity.md");

    /// Returns the write units in the warm-process column of this row of
    /// `docs/reference/capacity.md`.
    fn on_the_page(row: &str) -> u64 {
        let line = PAGE.lines().find(|line| line.starts_with(&format!("| {row} |"))).unwrap();
        line.split('|').nth(6).unwrap().split('/').next().unwrap().trim().parse().unwrap()
    }

    #[test]
    fn figures_are_those_of_the_capacity_page() {
        for (row, writes) in INDEXING_COSTS.iter().chain([&REMOVAL_COST]) {
            assert_eq!(on_the_page(row), *writes, "{row}");
        }
    }

    #[test]
    fn the_list_of_settings_says_the_same() {
        let cost = |kind| TableSetting::of(kind).unwrap().cost;
        assert!(cost(SettingKind::IndexedValues).contains(&format!("about {} write units", reindex_units())));
        assert!(cost(SettingKind::IndexedTexts).contains(&format!("about {} write units", reindex_units())));
        // The list of settings states the cost of removing a run, rounded down.
        assert!(cost(SettingKind::DeletedRetention).contains(&format!("About {} write units", REMOVAL_COST.1 / 100)));
        assert!(SETTINGS.iter().all(|setting| setting.is_settable() != setting.cost.is_empty()));
    }

    #[test]
    fn units_are_counted_by_runs() {
        assert!(of_reindex(Some(1_000)).starts_with("About 35000 write units for 1000 runs"));
        assert!(of_reindex_of(50).starts_with("About 1750 write units for the 50 runs of this experiment. The index"));
        assert!(of_reindex(None).starts_with("The index is rebuilt: about 35 write units per run"));
        let said = of_removal(DeletedCounts { runs: 2, models: 0, experiments: 1 });
        assert!(
            said.contains("2 runs, 0 logged models, 1 experiments")
                && said.contains("about 70 write units: 35 write units"),
            "{said}"
        );
        assert!(of_traces(UNLIMITED, &SettingHolder::Server).starts_with("Nothing."));
    }
}
