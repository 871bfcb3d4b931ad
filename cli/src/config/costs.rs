//! What a change of a setting costs, from the figures of the capacity pages and from counts that
//! the table holds. Nothing is read to count it, except what is deleted, and the runs of one
//! experiment.

use artifact_store::Artifacts;
use entities::now_ms;
use key_schema::IndexEntry;
use key_schema::index::RunsByName;
use mlflow_api::TraceRetention;
use mlflow_api::proto_json::time_text;
use retention::{Age, Entity, Retention};
use run_index::RunIndex;
use table::Table;
use workspaces::Workspaces;

use super::settings::{Kind, Setting};
use super::values::{Holder, OFF, failed};
use crate::Failure;

/// Rows of `docs/reference/capacity.md`, and their write units where a process is warm: to index a run with 4
/// tags, 10 metrics and 5 params.
const INDEXED: [(&str, u64); 3] = [("a new run, 4 tags", 12), ("its first 10 metrics", 13), ("5 params", 9)];
/// To mark it as changed, at the most.
const MARKED: u64 = 2;
/// To remove a hundred runs.
const REMOVED: (&str, u64) = ("find and remove 100 such runs", 3514);

/// Write units per run of a `reindex`.
fn reindexed() -> u64 {
    MARKED + INDEXED.iter().map(|(_, writes)| writes).sum::<u64>()
}

/// Write units per run that is removed.
fn removed() -> u64 {
    REMOVED.1 / 100
}

/// The cost of setting a value, in sentences.
pub(super) async fn of(table: &Table, setting: &Setting, holder: &Holder, value: &str) -> Result<String, Failure> {
    Ok(match setting.kind {
        Kind::DeletedRetention if value != OFF => {
            let age = Age::parse(value).map_err(failed)?;
            of_removal(deleted_before(table, age.before()).await?)
        }
        Kind::TraceRetention => of_traces(value, holder),
        Kind::IndexedValues | Kind::IndexedTexts => {
            if let Holder::Experiment(id) = holder {
                return Ok(of_reindex_of(
                    RunIndex::new(table.clone()).count_runs(*id).await.map_err(|failure| format!("{failure:?}"))?,
                ));
            }
            of_reindex(table.count_of_index(RunsByName::INDEX.name).await.map_err(|error| format!("{error:?}"))?)
        }
        _ => format!("{}.", setting.cost),
    })
}

/// What is deleted for longer than that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Deleted {
    runs: u64,
    models: u64,
    experiments: u64,
}

/// It takes the requests of `gc --dry-run`.
async fn deleted_before(table: &Table, before: i64) -> Result<Deleted, Failure> {
    let retention = Retention::new(table.clone(), Artifacts::default());
    let mut deleted = Deleted::default();
    for workspace in Workspaces::new(table.clone()).names().await.map_err(failed)? {
        for entity in retention.deleted(&workspace, Some(before)).await.map_err(failed)?.entities() {
            match entity {
                Entity::Run(_) => deleted.runs += 1,
                Entity::LoggedModel(_) => deleted.models += 1,
                Entity::Experiment(_) => deleted.experiments += 1,
            }
        }
    }
    Ok(deleted)
}

fn of_removal(Deleted { runs, models, experiments }: Deleted) -> String {
    let units = runs * removed();
    format!(
        "Already deleted for longer: {runs} runs, {models} logged models, {experiments} experiments. They are removed for good: \
         `serve`, or the stack, begins within an hour. For these runs that takes about {units} write units: {} \
         write units for each with 10 metrics, 5 params and 3 tags. An experiment goes with all of its runs. `gc --dry-run --older-than` lists them.",
        removed()
    )
}

fn of_traces(value: &str, holder: &Holder) -> String {
    let Some(since) = TraceRetention::parse(value).ok().and_then(|kept| kept.since(now_ms())) else {
        return "Nothing. Traces that were hidden and are not removed yet are there again within a minute.".to_owned();
    };
    let whose = match holder {
        Holder::Experiment(id) => format!("of experiment {id}"),
        _ => "of all experiments without a tag of their own".to_owned(),
    };
    format!(
        "Traces {whose} that began before {} are hidden within a minute. `serve`, or the stack, removes them by days: a write unit and more \
         for each document, and for each part of its spans.",
        time_text(since)
    )
}

fn of_reindex(runs: Option<u64>) -> String {
    let all = match runs {
        Some(runs) => format!(
            "About {} write units for {runs} runs that are not deleted, as the table counted them up to six hours ago. ",
            runs * reindexed()
        ),
        None => String::new(),
    };
    all + &of_each_run()
}

fn of_reindex_of(runs: u64) -> String {
    format!("About {} write units for the {runs} runs of this experiment. ", runs * reindexed()) + &of_each_run()
}

fn of_each_run() -> String {
    let per_run = reindexed();
    format!(
        "The index is built again: about {per_run} write units per run of 10 metrics, 5 params and 4 tags, and one more for each \
         further value, or for each character of a text. For three minutes, and until it is built, searches use no index for the \
         fields of these settings. A local database has no units, and takes time only."
    )
}

#[cfg(test)]
mod tests {
    use super::super::settings::{SETTINGS, Setting};
    use super::*;

    const PAGE: &str = include_str!("../../../docs/reference/capacity.md");

    /// The write units of a row when a process is warm.
    fn on_the_page(row: &str) -> u64 {
        let line = PAGE.lines().find(|line| line.starts_with(&format!("| {row} |"))).unwrap();
        line.split('|').nth(6).unwrap().split('/').next().unwrap().trim().parse().unwrap()
    }

    #[test]
    fn figures_are_those_of_the_capacity_page() {
        for (row, writes) in INDEXED.iter().chain([&REMOVED]) {
            assert_eq!(on_the_page(row), *writes, "{row}");
        }
    }

    #[test]
    fn the_list_of_settings_says_the_same() {
        let cost = |kind| Setting::of(kind).unwrap().cost;
        assert!(cost(Kind::IndexedValues).contains(&format!("about {} write units", reindexed())));
        assert!(cost(Kind::IndexedTexts).contains(&format!("about {} write units", reindexed())));
        // The list rounds down.
        assert!(cost(Kind::DeletedRetention).contains(&format!("About {} write units", REMOVED.1 / 100)));
        assert!(SETTINGS.iter().all(|setting| setting.is_settable() != setting.cost.is_empty()));
    }

    #[test]
    fn units_are_counted_by_runs() {
        assert!(of_reindex(Some(1_000)).starts_with("About 36000 write units for 1000 runs"));
        assert!(of_reindex_of(50).starts_with("About 1800 write units for the 50 runs of this experiment. The index"));
        assert!(of_reindex(None).starts_with("The index is built again: about 36 write units per run"));
        let said = of_removal(Deleted { runs: 2, models: 0, experiments: 1 });
        assert!(
            said.contains("2 runs, 0 logged models, 1 experiments")
                && said.contains("about 70 write units: 35 write units"),
            "{said}"
        );
        assert!(of_traces(OFF, &Holder::Server).starts_with("Nothing."));
    }
}
