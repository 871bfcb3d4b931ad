//! Scorers: register, read, delete.
//!
//! A scorer's row holds its id and a copy of its latest version, so that lists and the most frequent read are one request. The
//! versions are rows named by the id: those of a scorer that was deleted are not those of another of its name.

mod online;
mod payload;

use std::collections::BTreeSet;

use entities::attributes::{CREATED, NAME, VERSION};
use entities::now_ms;
use experiments::check_is_active;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, KeyRange, Name, Ordinal, WideDigest, part, rows};
use mlflow_api::scorers as wire;
use mlflow_api::tracking::{DEFAULT_WORKSPACE, LifecycleStage};
use mlflow_api::{Error, ExperimentId, Json, Result, ScorerId};
use rand::RngExt;
use table::{Condition, Failure, Item, Query, Write, number, text};

use super::Store;

/// In a scorer's row: its id.
const SCORER: &str = "scorer";
/// Versions deleted together with their scorer; a transaction has room for 100 writes.
const DELETED_TOGETHER: usize = 90;
/// Experiments whose scorers are read at a time.
const AT_ONCE: usize = 8;

/// A scorer, as a request names it.
#[derive(Clone, Debug)]
pub struct ScorerName<'a> {
    /// The experiment, as the client wrote it.
    pub experiment: &'a str,
    /// The name.
    pub name: &'a str,
}

impl ScorerName<'_> {
    /// MLflow's error for a scorer, or a version, that is not there.
    fn not_found(&self, version: Option<i64>) -> Error {
        let version = version.map(|version| format!(" and version {version}")).unwrap_or_default();
        Error::not_found(format!(
            "Scorer with name '{}'{version} not found for experiment {}.",
            self.name, self.experiment
        ))
    }
}

/// A scorer as its row has it.
struct Found {
    experiment: ExperimentId,
    id: ScorerId,
    item: Item,
}

impl Found {
    fn of(experiment: ExperimentId, item: Item) -> Option<Self> {
        let id = item.text(SCORER).and_then(ScorerId::parse)?;
        Some(Self { experiment, id, item })
    }

    /// The range of its versions.
    fn versions(&self) -> KeyRange {
        rows::ScorerVersion::all(&self.experiment).scorer(&self.id).range()
    }

    /// The latest version; none, where all were deleted one by one.
    fn latest(&self) -> Option<u32> {
        self.item.number(VERSION).and_then(|version| u32::try_from(version).ok())
    }

    /// The condition that its latest version is what was read.
    fn unchanged(&self) -> Condition {
        Condition::Equals(SCORER.into(), text(self.id.as_str())).and(same_version(&self.item))
    }
}

/// The condition that a row is of the version it was of when it was read. A number may be given again; the time tells which it is.
fn same_version(row: &Item) -> Condition {
    let same = |attribute: &'static str| match row.number(attribute) {
        None => Condition::Missing(attribute.into()),
        Some(value) => Condition::Equals(attribute.into(), number(value)),
    };
    same(VERSION).and(same(CREATED))
}

fn part_key(experiment: ExperimentId) -> impl Fn(&WideDigest, &Ordinal) -> Key {
    move |content, part| rows::ScorerPart::key(&experiment, content, part)
}

fn header_key(experiment: ExperimentId, name: &str) -> Key {
    rows::Scorer::key(&experiment, &Name::from(name))
}

/// A scorer's row without a version.
fn header(experiment: ExperimentId, name: &str, id: &ScorerId) -> Item {
    Item::new(header_key(experiment, name)).with(NAME, text(name)).with(SCORER, text(id.as_str()))
}

/// The row with a copy of what another says of a version.
fn with_version(item: Item, version: &Item) -> Item {
    let copied =
        version.0.iter().filter(|(name, _)| name.starts_with("content") || [VERSION, CREATED].contains(&name.as_str()));
    copied.fold(item, |item, (name, value)| item.with(name.clone(), value.clone()))
}

impl Store {
    /// The experiment a request names, which must be active. One request; none while a lease on it lasts.
    async fn scorer_experiment(&self, experiment: &str) -> Result<ExperimentId> {
        let id = ExperimentId::parse(experiment)?;
        let state = self.experiments.state(id).await?.ok_or_else(|| id.not_found())?;
        check_is_active(id, state.stage)?;
        Ok(id)
    }

    /// A scorer's row. One request, and one for the experiment where no lease lasts.
    async fn scorer_found(&self, scorer: &ScorerName<'_>) -> Result<Found> {
        let experiment = self.scorer_experiment(scorer.experiment).await?;
        let item = self.table.get(&header_key(experiment, scorer.name)).await?;
        item.and_then(|item| Found::of(experiment, item)).ok_or_else(|| scorer.not_found(None))
    }

    /// Registers a version of a scorer, the first of which makes it. Two requests, and one for the experiment where no lease lasts;
    /// one more per 25 parts of a big one.
    pub async fn scorer_register(&self, scorer: &ScorerName<'_>, serialized: &str) -> Result<wire::RegisteredScorer> {
        payload::check(serialized)?;
        if scorer.name.trim().is_empty() {
            return Err(Error::invalid("Scorer name cannot be empty or contain only whitespace."));
        }
        let experiment = self.scorer_experiment(scorer.experiment).await?;
        payload::check_model(serialized)?;
        for attempt in 0..self.table.retry().attempts {
            self.table.retry().pause(attempt).await;
            let item = self.table.get(&header_key(experiment, scorer.name)).await?;
            let found = item.and_then(|item| Found::of(experiment, item));
            let latest = found.as_ref().and_then(Found::latest).unwrap_or_default();
            let version = latest.checked_add(1).ok_or_else(|| Error::internal("no versions left"))?;
            let created = now_ms();
            let (id, condition) = if let Some(found) = &found {
                (found.id.clone(), found.unchanged())
            } else {
                let time = u64::try_from(created).unwrap_or_default();
                (ScorerId::new(time, experiment, rand::rng().random()), Condition::item_missing())
            };
            let key = rows::ScorerVersion::key(&experiment, &id, &Ordinal(version));
            let packed =
                content::pack_once(&format!("{id} {version}"), serialized, content::INLINE, part_key(experiment));
            let row = packed.on(Item::new(key)).with(VERSION, number(version)).with(CREATED, number(created));
            let header = with_version(header(experiment, scorer.name, &id), &row);
            let mut writes = vec![Write::Put(header, condition), Write::Put(row, Condition::item_missing())];
            if found.is_none() {
                let listed = rows::WorkspaceScorer::key(&DEFAULT_WORKSPACE.into(), &experiment, &scorer.name.into());
                writes.push(Write::Put(Item::new(listed).with(NAME, text(scorer.name)), Condition::All(Vec::new())));
            }
            let parts = packed.part_keys();
            self.table.write_many(packed.parts, &[]).await?;
            match self.table.transact(&writes).await {
                Ok(()) => {
                    return Ok(wire::RegisteredScorer {
                        version,
                        scorer_id: id.to_string(),
                        experiment_id: experiment.to_string(),
                        name: scorer.name.to_owned(),
                        serialized_scorer: serialized.to_owned(),
                        creation_time: created,
                    });
                }
                // Somebody else registered a version. Nothing will ever name the parts.
                Err(Failure::Cancelled(_)) => self.table.write_many(Vec::new(), &parts).await?,
                Err(failure) => return Err(failure.into()),
            }
        }
        Err(Error::unavailable("a scorer kept changing"))
    }

    /// Reads the latest version of a scorer, or another. One request, two for another; one more for the experiment where no lease
    /// lasts, and for a big one.
    pub async fn scorer_get(&self, scorer: &ScorerName<'_>, version: Option<i64>) -> Result<wire::Scorer> {
        let found = self.scorer_found(scorer).await?;
        let not_found = || scorer.not_found(version);
        let version_row = match version {
            None => found.latest().map(|_| found.item.clone()),
            Some(version) => self.scorer_version(&found, version).await?,
        };
        let version_row = version_row.ok_or_else(not_found)?;
        self.scorer_whole(&found, &version_row).await?.ok_or_else(not_found)
    }

    /// The row of a version, if there is one. One request.
    async fn scorer_version(&self, found: &Found, version: i64) -> Result<Option<Item>> {
        let Ok(version) = u32::try_from(version) else { return Ok(None) };
        Ok(self.table.get(&rows::ScorerVersion::key(&found.experiment, &found.id, &Ordinal(version))).await?)
    }

    /// A version from its row, or from the scorer's. No request unless it is big.
    async fn scorer_whole(&self, found: &Found, row: &Item) -> Result<Option<wire::Scorer>> {
        let whole = content::read_with_item(&self.table, row.clone(), part_key(found.experiment)).await?;
        let Some((row, serialized_scorer)) = whole else { return Ok(None) };
        // The scorer may be another of its name by now.
        let id = row.text(SCORER).map_or_else(|| found.id.to_string(), str::to_owned);
        Ok(Some(wire::Scorer {
            experiment_id: found.experiment.number(),
            scorer_name: found.item.text(NAME).unwrap_or_default().to_owned(),
            scorer_version: row.number(VERSION).and_then(|version| u32::try_from(version).ok()).unwrap_or_default(),
            serialized_scorer,
            creation_time: row.number(CREATED).unwrap_or_default(),
            scorer_id: id,
        }))
    }

    /// The same as lists have it: MLflow prints the JSON anew for them.
    async fn scorer_in_list(&self, found: &Found, row: &Item) -> Result<Option<wire::Scorer>> {
        let scorer = self.scorer_whole(found, row).await?;
        Ok(scorer.map(|scorer| {
            let printed = Json::parse(&scorer.serialized_scorer).map(|json| json.print());
            wire::Scorer { serialized_scorer: printed.unwrap_or(scorer.serialized_scorer.clone()), ..scorer }
        }))
    }

    /// All versions of a scorer, the oldest first. Two requests, more where they are more than a MB; one for the experiment where
    /// no lease lasts.
    pub async fn scorer_versions(&self, scorer: &ScorerName<'_>) -> Result<Vec<wire::Scorer>> {
        let found = self.scorer_found(scorer).await?;
        let rows = self.table.query(Query::of(found.versions())).await?;
        let versions = try_join_all(rows.iter().map(|row| self.scorer_in_list(&found, row))).await?;
        let versions: Vec<_> = versions.into_iter().flatten().collect();
        if versions.is_empty() { Err(scorer.not_found(None)) } else { Ok(versions) }
    }

    /// The latest versions of an experiment's scorers, by name. A request per MB of them, and one for the experiment where no lease
    /// lasts.
    pub async fn scorer_list(&self, experiment: &str) -> Result<Vec<wire::Scorer>> {
        let experiment = self.scorer_experiment(experiment).await?;
        self.scorers_of(&[experiment]).await
    }

    /// The same for those of several experiments that are active. Two requests per experiment.
    pub async fn scorer_list_of(&self, experiments: &[ExperimentId]) -> Result<Vec<wire::Scorer>> {
        let once: BTreeSet<_> = experiments.iter().copied().collect();
        let states = self.experiments.states(&once.into_iter().collect::<Vec<_>>()).await?;
        let active = states.into_iter().filter(|(_, state)| state.stage == LifecycleStage::Active);
        self.scorers_of(&active.map(|(id, _)| id).collect::<Vec<_>>()).await
    }

    /// The same for all active experiments of the workspace. A request per MB of the list of scorers, and two for each experiment
    /// that has any.
    pub async fn scorer_list_all(&self) -> Result<Vec<wire::Scorer>> {
        let rows = self.table.query(Query::of(rows::WorkspaceScorer::all(&DEFAULT_WORKSPACE.into()))).await?;
        let experiment = |row: &Item| part::experiment_of_listed_scorer(&row.key()?.sk);
        self.scorer_list_of(&rows.iter().filter_map(experiment).collect::<Vec<_>>()).await
    }

    async fn scorers_of(&self, experiments: &[ExperimentId]) -> Result<Vec<wire::Scorer>> {
        let mut experiments = experiments.to_vec();
        experiments.sort_unstable();
        let scorers: Vec<_> = experiments.into_iter().map(|experiment| self.scorers_of_one(experiment)).collect();
        let scorers: Vec<Vec<_>> = stream::iter(scorers).buffered(AT_ONCE).try_collect().await?;
        Ok(scorers.into_iter().flatten().collect())
    }

    async fn scorers_of_one(&self, experiment: ExperimentId) -> Result<Vec<wire::Scorer>> {
        let rows = self.table.query(Query::of(rows::Scorer::all(&experiment))).await?;
        let found: Vec<_> = rows.into_iter().filter_map(|row| Found::of(experiment, row)).collect();
        let with_versions = found.iter().filter(|found| found.latest().is_some());
        let scorers = try_join_all(with_versions.map(|found| self.scorer_in_list(found, &found.item))).await?;
        let mut scorers: Vec<_> = scorers.into_iter().flatten().collect();
        scorers.sort_by(|a, b| a.scorer_name.cmp(&b.scorer_name));
        Ok(scorers)
    }

    /// Deletes a version of a scorer, or the whole of it with all versions and its online configuration. Two or three requests, and
    /// one for the experiment where no lease lasts.
    pub async fn scorer_delete(&self, scorer: &ScorerName<'_>, version: Option<i64>) -> Result<()> {
        for attempt in 0..self.table.retry().attempts {
            self.table.retry().pause(attempt).await;
            let found = self.scorer_found(scorer).await?;
            let (writes, rest) = match version {
                None => self.scorer_deletion(scorer, &found).await?,
                Some(version) => self.scorer_version_deletion(scorer, &found, version).await?,
            };
            match self.table.transact(&writes).await {
                Ok(()) => return Ok(self.table.write_many(Vec::new(), &rest).await?),
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        Err(Error::unavailable("a scorer kept changing"))
    }

    /// What deletes a scorer, and what may follow.
    async fn scorer_deletion(&self, scorer: &ScorerName<'_>, found: &Found) -> Result<(Vec<Write>, Vec<Key>)> {
        let versions = self.table.query(Query::of(found.versions())).await?;
        if versions.is_empty() {
            return Err(scorer.not_found(None));
        }
        let listed = rows::WorkspaceScorer::key(&DEFAULT_WORKSPACE.into(), &found.experiment, &scorer.name.into());
        let always = || Condition::All(Vec::new());
        let mut writes = vec![
            Write::Delete(header_key(found.experiment, scorer.name), found.unchanged()),
            Write::Delete(rows::ScorerOnlineConfig::key(&found.experiment, &found.id), always()),
            Write::Delete(listed, always()),
        ];
        // Nothing finds a version without its scorer, so that many more may follow one by one.
        let mut keys: Vec<_> = versions.iter().filter_map(Item::key).collect();
        let mut rest = keys.split_off(keys.len().min(DELETED_TOGETHER));
        writes.extend(keys.into_iter().map(|key| Write::Delete(key, always())));
        rest.extend(versions.iter().flat_map(|version| content::part_keys(version, part_key(found.experiment))));
        Ok((writes, rest))
    }

    /// What deletes a version, and what may follow. If it is the latest, the one before takes its place.
    async fn scorer_version_deletion(
        &self,
        scorer: &ScorerName<'_>,
        found: &Found,
        version: i64,
    ) -> Result<(Vec<Write>, Vec<Key>)> {
        let row = self.scorer_version(found, version).await?.ok_or_else(|| scorer.not_found(Some(version)))?;
        let rest = content::part_keys(&row, part_key(found.experiment));
        let key = row.key().unwrap_or_else(|| header_key(found.experiment, scorer.name));
        let delete = Write::Delete(key, same_version(&row));
        let header_writes = if found.latest().map(i64::from) == Some(version) {
            let query = Query::of(found.versions()).backwards().limit(2);
            let rows = self.table.query_page(&query).await?.items;
            let before = rows.iter().find(|row| row.number(VERSION) != Some(version));
            let header = header(found.experiment, scorer.name, &found.id);
            let header = before.into_iter().fold(header, with_version);
            // The one before must not go meanwhile.
            let is_there = before.and_then(|row| Some(Write::Check(row.key()?, same_version(row))));
            [Some(Write::Put(header, found.unchanged())), is_there]
        } else {
            [Some(Write::Check(header_key(found.experiment, scorer.name), found.unchanged())), None]
        };
        Ok((header_writes.into_iter().flatten().chain([delete]).collect(), rest))
    }
}
