//! `mlflow-serverless reindex`: builds the index of searches again, while it is in use.

use std::time::{Duration, Instant};

use clap::Args;
use embedded_engine::Engine;
use entities::fields::{LEASE, Setting};
use entities::layout;
use fts_indexer::Indexer;
use indicatif::{ProgressBar, ProgressStyle};
use mlflow_api::ExperimentId;
use search::IndexedFields;
use table::Table;
use tokio::time::sleep;
use workspaces::Workspaces;

use crate::Failure;
use crate::connect::Place;
use crate::feed::{Feed, InProcess, TICK};
use crate::say::say;

/// Options of `reindex`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only this experiment [default: all].
    #[arg(long, value_name = "ID", conflicts_with_all = ["values", "text"])]
    experiment: Option<String>,
    /// From now on, index the whole values of fields that match, for example 'tags.*' or
    /// '!tags.mlflow.*'. Of several patterns, the last that matches counts. Replaces the earlier
    /// patterns.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    values: Vec<String>,
    /// From now on, index trigrams of fields that match, for example 'tags.note' or 'params.*'.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    text: Vec<String>,
    #[command(flatten)]
    place: Place,
}

/// Pause between two checks of how many runs are left.
const LOOK: Duration = Duration::from_millis(500);
/// How long the indexer may take for one portion of a batch, in which it does not look at the setting again.
const LONGEST_PORTION: Duration = Duration::from_mins(2);
/// How long to wait while no run is indexed: changes may be gathered for five minutes before the indexer gets them.
const PATIENCE: Duration = Duration::from_mins(15);

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let (table, engine) = options.place.connect().await?;
    layout::check(&table).await?;
    let fields = new_fields(&options, &read_setting(&table).await?.indexed);
    rebuild(&table, engine, &options.place.name, options.experiment.as_deref(), fields).await
}

/// Indexes all runs again, or those of one experiment. With fields, these are indexed from now on.
pub(crate) async fn rebuild(
    table: &Table,
    engine: Option<Engine>,
    name: &str,
    experiment: Option<&str>,
    fields: Option<IndexedFields>,
) -> Result<(), Failure> {
    let table = table.clone().in_background();
    // In AWS, an indexer is running already. On the embedded engine, this one is idle while a
    // server has one.
    let feed = engine.map(|engine| {
        let consumer = InProcess(Indexer::new(table.clone()).alone());
        Feed::start(engine, name.to_owned(), consumer, Duration::ZERO, TICK)
    });
    let outcome = rebuild_fed(&table, experiment, fields).await;
    if let Some(feed) = feed {
        feed.stop().await;
    }
    outcome
}

async fn rebuild_fed(table: &Table, experiment: Option<&str>, fields: Option<IndexedFields>) -> Result<(), Failure> {
    let indexer = Indexer::new(table.clone());
    if let Some(fields) = fields {
        let present = read_setting(table).await?.indexed;
        // First searches stop relying on it, then the indexer may take it out. Then no batch in
        // progress has the old fields.
        let nothing = IndexedFields { values: Vec::new(), text: Vec::new() };
        write_setting(table, Setting { indexed: present, searched: nothing.clone() }).await?;
        wait("waiting until no server relies on the fields indexed before", LEASE).await;
        write_setting(table, Setting { indexed: fields, searched: nothing }).await?;
        wait("waiting until no batch under way indexes the fields of before", LONGEST_PORTION).await;
    }
    let experiments = if let Some(id) = experiment {
        vec![ExperimentId::parse(id).map_err(|error| error.message)?]
    } else {
        let mut all = Vec::new();
        for workspace in Workspaces::new(table.clone()).names().await.map_err(|error| error.to_string())? {
            all.extend(indexer.experiments(&workspace).await.map_err(|failure| format!("{failure:?}"))?);
        }
        all
    };

    let bar = spinner("runs marked");
    let mut left = Vec::new();
    for experiment in experiments.iter().copied() {
        let marked = indexer.mark_runs(experiment, |runs| bar.inc(runs as u64)).await;
        left.push((experiment, marked.map_err(|failure| format!("runs could not be marked: {failure:?}"))?));
    }
    let runs = left.iter().map(|(_, runs)| runs.len()).sum::<usize>() as u64;
    bar.finish_and_clear();

    let bar = ProgressBar::new(runs).with_style(style("{bar:40} {pos}/{len} runs indexed, {eta} left")?);
    let mut moved = Instant::now();
    while !left.is_empty() && moved.elapsed() < PATIENCE {
        let count = left.iter().map(|(_, runs)| runs.len()).sum::<usize>();
        // A look reads all marks.
        sleep(LOOK + Duration::from_micros(50) * u32::try_from(count).unwrap_or(u32::MAX)).await;
        for (experiment, runs) in &mut left {
            let dropped = indexer.drop_rebuilt(*experiment, runs).await;
            dropped.map_err(|failure| format!("the index could not be read: {failure:?}"))?;
        }
        left.retain(|(_, runs)| !runs.is_empty());
        let now = left.iter().map(|(_, runs)| runs.len()).sum::<usize>();
        if now < count {
            moved = Instant::now();
        }
        bar.set_position(runs - now as u64);
    }
    bar.finish_and_clear();
    // They stay marked, and searches look at them.
    let left: Vec<_> = left.iter().flat_map(|(_, runs)| runs).collect();
    if let Some(first) = left.first() {
        say(&format!("{} runs could not be indexed, {first} among them; the indexer's log says why", left.len()));
    }

    let bar = spinner("entries of no run removed");
    for experiment in &experiments {
        let swept = indexer.sweep(*experiment).await;
        bar.inc(swept.map_err(|failure| format!("the index could not be swept: {failure:?}"))? as u64);
    }
    let swept = bar.position();
    bar.finish_and_clear();
    if experiment.is_none() {
        // Also where an earlier rebuild was cut off.
        let fields_now = read_setting(table).await?.indexed;
        write_setting(table, Setting { searched: fields_now.clone(), indexed: fields_now }).await?;
    }
    say(&format!("{runs} runs of {} experiments indexed, {swept} stray entries removed", experiments.len()));
    Ok(())
}

/// The beginnings of a run's fields.
const FIELDS: [&str; 4] = ["attributes.", "tags.", "params.", "datasets."];

/// A pattern that can match a field.
pub(crate) fn pattern(text: &str) -> Result<String, String> {
    let wanted = text.strip_prefix('!').unwrap_or(text);
    let (begin, is_whole) = wanted.split_once('*').map_or((wanted, true), |(begin, _)| (begin, false));
    let fits = |field: &str| begin.starts_with(field) || (!is_whole && field.starts_with(begin));
    if FIELDS.iter().any(|field| fits(field)) {
        return Ok(text.to_owned());
    }
    Err(format!("no field of a run begins so: they begin with {}", FIELDS.join(", ")))
}

/// The fields to index from now on; `None` if they stay.
fn new_fields(options: &Options, present: &IndexedFields) -> Option<IndexedFields> {
    let given = |patterns: &Vec<String>, present: &Vec<String>| {
        if patterns.is_empty() { present.clone() } else { patterns.clone() }
    };
    let is_given = !options.values.is_empty() || !options.text.is_empty();
    is_given.then(|| IndexedFields {
        values: given(&options.values, &present.values),
        text: given(&options.text, &present.text),
    })
}

async fn read_setting(table: &Table) -> Result<Setting, Failure> {
    Setting::read(table).await.map_err(|failure| format!("the setting could not be read: {failure:?}").into())
}

async fn write_setting(table: &Table, setting: Setting) -> Result<(), Failure> {
    setting.write(table).await.map_err(|failure| format!("the setting could not be written: {failure:?}").into())
}

async fn wait(why: &'static str, time: Duration) {
    let bar = spinner(why);
    sleep(time).await;
    bar.finish_and_clear();
}

fn spinner(of: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(of);
    if let Ok(style) = style("{spinner} {pos} {msg}, {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn style(template: &str) -> Result<ProgressStyle, Failure> {
    Ok(ProgressStyle::with_template(template)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_can_match_no_field_is_refused() {
        for text in ["*", "tags.*", "!tags.mlflow.*", "t*", "tags.a", "attributes.run_name", "params.*.x", "*note*"] {
            assert_eq!(pattern(text), Ok(text.to_owned()));
        }
        for text in ["", "!", "note", "tag.*", "tags", "Tags.a", "metrics.*", "!param.x"] {
            assert!(pattern(text).is_err(), "{text}");
        }
    }
}
