//! Selection of the path of a search.

use super::cost::{self, Estimates, PlanCost};
use super::list_heads::ListHeads;
use super::options::RunOptions;
use super::plan::{AccessPath, RunPlan, is_rare};
use super::run_list::RunList;
use super::run_walk::RunWalk;

/// Maximum ratio of the length of a joined list to that of the shortest list. Reading a longer list
/// would cost more than reading the runs that it excludes.
const MAX_LENGTH_RATIO: f64 = 50.0;
/// Maximum number of lists to join. This is also the number of lists that are probed.
const MAX_JOINED_LISTS: usize = 3;

/// Chooses the cheapest plan among the paths that the options allow, based on the heads that are
/// known. A page has `page_size` runs.
#[must_use]
pub fn choose(options: &RunOptions, heads: &ListHeads, page_size: usize) -> RunPlan {
    let estimates = Estimates::new(options, heads, page_size);
    let paths = paths(options, heads, &estimates);
    // Among paths with equal costs, the first one is chosen.
    let cheapest = paths.into_iter().min_by(|left, right| left.cost.weight().total_cmp(&right.cost.weight()));
    let PathWithCost { path, narrow_by, per_run, cost } =
        cheapest.unwrap_or_else(|| PathWithCost::new(AccessPath::AllRuns, estimates.whole()));
    RunPlan { path, started: options.started, narrow_by, per_run, cost }
}

/// Returns the plan that examines all runs, newest first, and does not read any list that the
/// indexer maintains.
#[must_use]
pub fn by_time(options: &RunOptions, page_size: usize) -> RunPlan {
    let heads = ListHeads::default();
    let estimates = Estimates::new(options, &heads, page_size);
    let (per_run, cost) = (estimates.per_run(&[]), estimates.by_time());
    let path = AccessPath::Newest { lists: Vec::new() };
    RunPlan { path, started: options.started, narrow_by: Vec::new(), per_run, cost }
}

/// A path, and its cost.
struct PathWithCost {
    path: AccessPath,
    narrow_by: Vec<RunList>,
    per_run: f64,
    cost: PlanCost,
}

impl PathWithCost {
    fn new(path: AccessPath, cost: PlanCost) -> Self {
        Self { path, narrow_by: Vec::new(), per_run: 1.0, cost }
    }

    /// Creates a path that reads lists one after another, in the given order.
    fn in_order(
        path: AccessPath,
        lists: &[RunList],
        options: &RunOptions,
        heads: &ListHeads,
        estimates: &Estimates<'_>,
    ) -> Self {
        let per_run = estimates.per_run(lists);
        let narrow_by = narrowing(&path, lists, options, heads, estimates);
        let now: &[RunList] = if is_rare(per_run) { &narrow_by } else { &[] };
        let is_by_time = path.is_by_time() && (narrow_by.is_empty() || path.may_be_narrowed_later(per_run));
        let cost = if is_by_time { estimates.by_time() } else { estimates.in_order(lists, now) };
        Self { path, narrow_by, per_run, cost }
    }
}

/// Returns the paths to compare. The paths with the most reliable cost estimates come first.
fn paths(options: &RunOptions, heads: &ListHeads, estimates: &Estimates<'_>) -> Vec<PathWithCost> {
    if let Some(ids) = &options.ids {
        return vec![PathWithCost::new(AccessPath::Ids(ids.clone()), cost::reads_of(ids.len()))];
    }
    let mut paths = Vec::new();
    let gather = |lists: Vec<RunList>| {
        let cost = estimates.gather(&lists);
        PathWithCost::new(AccessPath::Gather { lists }, cost)
    };
    let short: Vec<_> = options.lists.iter().filter(|list| heads.length(list).is_some()).cloned().collect();
    let is_short = !short.is_empty();
    if is_short {
        paths.push(gather(short));
    }
    if estimates.known_total().is_some() || options.walk.is_none() {
        paths.push(PathWithCost::new(AccessPath::AllRuns, estimates.whole()));
    }
    match &options.walk {
        // Reading the list of all runs is not considered, because gathering a short list is at
        // least as good, and also yields runs newest first.
        Some(_) if options.newest_first && is_short => {}
        Some(_) if options.newest_first => {
            let lists = joined(options, heads, estimates);
            let read = if lists.is_empty() { vec![RunList::All] } else { lists.clone() };
            paths.push(PathWithCost::in_order(AccessPath::Newest { lists }, &read, options, heads, estimates));
        }
        Some(walk) => {
            let walk = through_fewer(walk, options, heads, estimates);
            let read = match walk.segments.as_slice() {
                [only] => vec![only.clone()],
                // The segments are read one after another, and together contain all runs that may
                // pass.
                _ => vec![RunList::All],
            };
            paths.push(PathWithCost::in_order(AccessPath::Walk(walk), &read, options, heads, estimates));
        }
        None => {
            let lists = worth_gathering(options, estimates);
            if !lists.is_empty() {
                paths.push(gather(lists));
            }
        }
    }
    paths
}

/// Returns the lists to join: the most selective lists that are sorted newest first, except for
/// lists that are much longer than the shortest.
fn joined(options: &RunOptions, heads: &ListHeads, estimates: &Estimates<'_>) -> Vec<RunList> {
    let narrows = |list: &&RunList| list.is_indexed() && list.is_newest_first();
    let mut lists: Vec<_> = options.lists.iter().filter(narrows).cloned().collect();
    lists.sort_by(|left, right| estimates.share(left).total_cmp(&estimates.share(right)));
    if let Some(shortest) = lists.first().cloned() {
        lists.retain(|list| !is_much_longer(list, &shortest, heads));
    }
    lists.truncate(MAX_JOINED_LISTS);
    lists
}

/// Checks whether a list is known to be much longer than another.
fn is_much_longer(list: &RunList, than: &RunList, heads: &ListHeads) -> bool {
    heads.rate(list).zip(heads.rate(than)).is_some_and(|(rate, shortest)| rate > MAX_LENGTH_RATIO * shortest)
}

/// Replaces the list of all runs in a walk with a shorter list in the same order, if there is one.
fn through_fewer(walk: &RunWalk, options: &RunOptions, heads: &ListHeads, estimates: &Estimates<'_>) -> RunWalk {
    let mut walk = walk.clone();
    if walk.segments == [RunList::All] {
        let shortest = joined(options, heads, estimates).into_iter().next();
        walk.segments = vec![shortest.unwrap_or(RunList::All)];
    }
    walk
}

/// Returns the lists to narrow a path by. Reading the entries of these lists costs less than
/// reading the runs that they exclude. If the estimates find no such list, the shortest list is
/// returned, in case far fewer runs pass than estimated.
fn narrowing(
    path: &AccessPath,
    read: &[RunList],
    options: &RunOptions,
    heads: &ListHeads,
    estimates: &Estimates<'_>,
) -> Vec<RunList> {
    let walked = if let AccessPath::Walk(walk) = path { walk.segments.as_slice() } else { read };
    let is_unused = |list: &&RunList| {
        let is_used = walked.iter().any(|used| *list == used || list.is_by_the_same(used));
        list.is_indexed() && !is_used && !read.iter().any(|used| is_much_longer(list, used, heads))
    };
    let unused = || options.lists.iter().filter(is_unused);
    let worth = cheapest_of(unused(), estimates, |narrow_by| estimates.in_order(read, narrow_by));
    let shortest = || unused().min_by(|left, right| estimates.share(left).total_cmp(&estimates.share(right)));
    if worth.is_empty() { shortest().into_iter().cloned().collect() } else { worth }
}

/// Returns the lists to gather. Reading the entries of these lists costs less than reading the runs
/// that they exclude.
fn worth_gathering(options: &RunOptions, estimates: &Estimates<'_>) -> Vec<RunList> {
    let lists = options.lists.iter().filter(|list| list.is_indexed());
    cheapest_of(lists, estimates, |lists| if lists.is_empty() { estimates.whole() } else { estimates.gather(lists) })
}

/// Adds lists in ascending order of their share of the runs, and keeps each one that reduces the
/// cost.
fn cheapest_of<'a>(
    lists: impl Iterator<Item = &'a RunList>,
    estimates: &Estimates<'_>,
    cost: impl Fn(&[RunList]) -> PlanCost,
) -> Vec<RunList> {
    let mut by_share: Vec<_> = lists.collect();
    by_share.sort_by(|left, right| estimates.share(left).total_cmp(&estimates.share(right)));
    let mut chosen: Vec<RunList> = Vec::new();
    for list in by_share {
        let mut more = chosen.clone();
        more.push(list.clone());
        if cost(&more).weight() < cost(&chosen).weight() {
            chosen = more;
        }
    }
    chosen
}
