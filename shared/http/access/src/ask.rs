//! Turns the needs of a request into asks for the authorizer.

use std::collections::{HashMap, HashSet};

use entities::attributes::WORKSPACE;
use key_schema::rows;
use mlflow_api::{EvaluationDatasetId, ExperimentId, Result, Workspace};
use table::{Item, Table, TableKey};

use crate::authorizer::Authorizer;
use crate::guard::{Ask, Guarded, Read, Stored, experiments_of};
use crate::identity::Identity;
use crate::kind::Resource;
use crate::needs::{Need, Needs};
use crate::resolve::Resolved;
use crate::workspaces::check;

/// The ask about one need, and the entity of its target: `None`, where that is in another
/// workspace.
pub(crate) struct Asked {
    pub(crate) resolved: Option<Resolved>,
    /// What has to be allowed: all of it, or one of it.
    pub(crate) asks: Vec<Ask>,
    /// Whether one of these is enough. An evaluation dataset may be read by callers who may read one of its experiments.
    pub(crate) one_is_enough: bool,
}

/// The asks for each need, in their order; the caller; and the items that were read for the answer,
/// if guards are looked at.
pub(crate) async fn ask(
    authorizer: &dyn Authorizer,
    looks: bool,
    identity: Identity,
    table: &Table,
    needs: &Needs,
    targets: Vec<Option<Resolved>>,
) -> Result<(Vec<Asked>, Identity, Read)> {
    let mut targets = targets;
    let listed =
        if looks { experiments_of_datasets(table, &identity.workspace, &mut targets).await? } else { HashMap::new() };
    let guards: Vec<Vec<Guarded>> =
        needs.iter().zip(&targets).map(|(need, resolved)| guards(need, resolved.as_ref(), &listed)).collect();
    let (identity, read) = if looks {
        let mut wanted: HashSet<_> = guards.concat().into_iter().collect();
        // The default one is always there.
        let is_elsewhere = identity.workspace != Workspace::default() && !needs.is_empty();
        let here = Guarded::Workspace(Resource::Workspace);
        let is_writing = needs.iter().any(|need| need.action.writes());
        let says_nothing = |guard: &Guarded| guard.key(&identity.workspace).is_none();
        let is_asked = is_writing || guards.iter().any(Vec::is_empty) || wanted.iter().any(says_nothing);
        if is_elsewhere && is_asked {
            wanted.insert(here.clone());
        }
        let is_looked_at = wanted.iter().any(|guard| matches!(guard, Guarded::Workspace(_)));
        let (mut identity, mut read) =
            authorizer.read(identity, table, &wanted.into_iter().collect::<Vec<_>>()).await?;
        // A found entity shows that its workspace exists. If nothing is found, the workspace may
        // not exist, either.
        if is_elsewhere && !is_looked_at && !holds_any_of(&read, &identity.workspace)? {
            let more;
            (identity, more) = authorizer.read(identity, table, &[here]).await?;
            read.extend(more);
            check(&identity.workspace, &read, needs)?;
        } else if is_elsewhere && is_looked_at {
            check(&identity.workspace, &read, needs)?;
        }
        (identity, read)
    } else {
        (identity, Read::new())
    };
    let stored = |guard: &Guarded| {
        let key = guard.key(&identity.workspace).filter(|_| !matches!(guard, Guarded::Workspace(_)));
        let item = key.and_then(|key| read.get(&TableKey::here(key)));
        item.map(Stored::of).transpose()
    };
    let mut asked = Vec::new();
    for ((need, resolved), guards) in needs.iter().zip(targets).zip(guards) {
        let stored = guards.iter().map(stored).collect::<Result<Vec<_>>>()?;
        let is_foreign =
            |stored: &Option<Stored>| stored.as_ref().is_some_and(|stored| stored.workspace != identity.workspace);
        let is_dataset = matches!(resolved, Some(Resolved::EvaluationDataset(_)));
        // A dataset that is here may name experiments that are elsewhere, or that were made there later.
        let resolved = resolved.filter(|_| is_dataset || !stored.iter().any(is_foreign));
        let asks = match &resolved {
            None if need.tells_of_absence => Vec::new(),
            None => vec![one(need, Guarded::Absent(need.kind), None)],
            Some(_) => {
                let ask = |(guard, stored): (Guarded, Option<Stored>)| {
                    if is_foreign(&stored) {
                        one(need, Guarded::Absent(need.kind), None)
                    } else {
                        one(need, guard, stored)
                    }
                };
                guards.into_iter().zip(stored).map(ask).collect()
            }
        };
        asked.push(Asked { resolved, asks, one_is_enough: is_dataset && !need.action.writes() });
    }
    Ok((asked, identity, read))
}

/// Whether anything that was read says that it is in this workspace.
fn holds_any_of(read: &Read, workspace: &Workspace) -> Result<bool> {
    let is_here = |item: &Item| Ok(item.has(WORKSPACE) && Stored::of(item)?.workspace == *workspace);
    read.values().map(is_here).find(|found| !matches!(found, Ok(false))).unwrap_or(Ok(false))
}

fn one(need: &Need, guard: Guarded, stored: Option<Stored>) -> Ask {
    let is_prompt = stored.as_ref().is_some_and(|stored| stored.is_prompt);
    let kind = if is_prompt { need.kind.of_prompt() } else { need.kind };
    Ask { action: need.action, kind, guard, stored }
}

/// The guards of a need's target: each of the experiments of an evaluation dataset, if there is
/// any, and one guard for all else.
fn guards(
    need: &Need,
    resolved: Option<&Resolved>,
    listed: &HashMap<EvaluationDatasetId, Vec<ExperimentId>>,
) -> Vec<Guarded> {
    let Some(resolved) = resolved else { return Vec::new() };
    match resolved {
        Resolved::EvaluationDataset(dataset) => match listed.get(dataset) {
            Some(experiments) if !experiments.is_empty() => {
                experiments.iter().copied().map(Guarded::Experiment).collect()
            }
            _ => vec![resolved.guarded(&need.target)],
        },
        _ => vec![resolved.guarded(&need.target)],
    }
}

/// The experiments of the evaluation datasets that a request names. The targets that are datasets of another workspace become none. One
/// request, if any is named.
async fn experiments_of_datasets(
    table: &Table,
    workspace: &Workspace,
    targets: &mut [Option<Resolved>],
) -> Result<HashMap<EvaluationDatasetId, Vec<ExperimentId>>> {
    let named = targets.iter().flatten().filter_map(|resolved| match resolved {
        Resolved::EvaluationDataset(dataset) => Some(dataset.clone()),
        _ => None,
    });
    let named: HashSet<_> = named.collect();
    if named.is_empty() {
        return Ok(HashMap::new());
    }
    let key = |dataset: &EvaluationDatasetId| Some(rows::EvaluationDataset::key(dataset));
    let keys: Vec<_> = named.iter().filter_map(key).collect();
    let items = table.get_many(&keys).await?;
    for target in targets.iter_mut() {
        let Some(Resolved::EvaluationDataset(dataset)) = target else { continue };
        let item = key(dataset).and_then(|key| items.get(&key));
        if item.map(Stored::of).transpose()?.is_some_and(|stored| stored.workspace != *workspace) {
            *target = None;
        }
    }
    let listed = named.into_iter().map(|dataset| {
        let item = key(&dataset).and_then(|key| items.get(&key));
        let experiments = item.map(|item| experiments_of(item).collect()).unwrap_or_default();
        (dataset, experiments)
    });
    Ok(listed.collect())
}
