//! Chooses the path of a search.

use mlflow_api::tracking::ViewType;

use super::cost::{Cost, Estimates};
use super::heads::Heads;
use super::list::RunList;
use super::options::Options;
use super::walk::Walk;
use super::{AccessPath, RunPlan, is_rare};
use crate::filter::RunFilter;
use crate::order_by::RunOrder;

/// A list this many times longer than the shortest is not joined: reading it costs more than the runs it leaves out.
const MUCH_LONGER: f64 = 50.0;
/// How many lists are joined: as many as are looked at before.
const JOINED: usize = 3;

/// Chooses how a search is carried out: the cheapest of the paths that the options allow, by what is known of their lists.
/// `options` are those of the filter and the order.
#[must_use]
pub fn choose(
    options: &Options,
    heads: &Heads,
    filter: RunFilter,
    order: RunOrder,
    view: ViewType,
    page_size: usize,
) -> RunPlan {
    let estimates = Estimates::new(options, heads, page_size);
    let paths = paths(options, heads, &estimates);
    // Of paths that cost the same, the first.
    let cheapest = paths.into_iter().min_by(|left, right| left.cost.weight().total_cmp(&right.cost.weight()));
    let Costed { path, narrow_by, per_run, cost } =
        cheapest.unwrap_or_else(|| Costed::new(AccessPath::Whole, estimates.whole()));
    RunPlan { path, started: options.started, narrow_by, per_run, cost, filter, order, view }
}

/// A path and what it costs.
struct Costed {
    path: AccessPath,
    narrow_by: Vec<RunList>,
    per_run: f64,
    cost: Cost,
}

impl Costed {
    fn new(path: AccessPath, cost: Cost) -> Self {
        Self { path, narrow_by: Vec::new(), per_run: 1.0, cost }
    }

    /// A path that reads these lists in order.
    fn in_order(path: AccessPath, lists: &[RunList], options: &Options, heads: &Heads, estimates: &Estimates) -> Self {
        let per_run = estimates.per_run(lists);
        let narrow_by = narrowing(&path, lists, options, heads, estimates);
        let now: &[RunList] = if is_rare(per_run) { &narrow_by } else { &[] };
        let cost = estimates.in_order(lists, now);
        Self { path, narrow_by, per_run, cost }
    }
}

/// The paths worth comparing, those first that are known best.
fn paths(options: &Options, heads: &Heads, estimates: &Estimates) -> Vec<Costed> {
    if let Some(ids) = &options.ids {
        return vec![Costed::new(AccessPath::Ids(ids.clone()), Estimates::ids(ids.len()))];
    }
    let mut paths = Vec::new();
    let gather = |lists: Vec<RunList>| {
        let cost = estimates.gather(&lists);
        Costed::new(AccessPath::Gather { lists }, cost)
    };
    let short: Vec<_> = options.lists.iter().filter(|list| heads.length(list).is_some()).cloned().collect();
    let is_short = !short.is_empty();
    if is_short {
        paths.push(gather(short));
    }
    if estimates.known_runs().is_some() || options.walk.is_none() {
        paths.push(Costed::new(AccessPath::Whole, estimates.whole()));
    }
    match &options.walk {
        // A short list is no worse: it leads to the runs in the same order.
        Some(_) if options.newest_first && is_short => {}
        Some(_) if options.newest_first => {
            let lists = joined(options, heads, estimates);
            let read = if lists.is_empty() { vec![RunList::Runs] } else { lists.clone() };
            paths.push(Costed::in_order(AccessPath::Newest { lists }, &read, options, heads, estimates));
        }
        Some(walk) => {
            let walk = through_fewer(walk, options, heads, estimates);
            let read = match walk.segments.as_slice() {
                [only] => vec![only.clone()],
                // Where one list ends, the next goes on.
                _ => vec![RunList::Runs],
            };
            paths.push(Costed::in_order(AccessPath::Walk(walk), &read, options, heads, estimates));
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

/// The lists that are newest first, but for those that hardly leave out a run.
fn joined(options: &Options, heads: &Heads, estimates: &Estimates) -> Vec<RunList> {
    let narrows = |list: &&RunList| **list != RunList::Runs && list.is_newest_first();
    let mut lists: Vec<_> = options.lists.iter().filter(narrows).cloned().collect();
    lists.sort_by(|left, right| estimates.share(left).total_cmp(&estimates.share(right)));
    if let Some(shortest) = lists.first().cloned() {
        lists.retain(|list| !is_much_longer(list, &shortest, heads));
    }
    lists.truncate(JOINED);
    lists
}

/// Whether it is known that a list is much longer than another.
fn is_much_longer(list: &RunList, than: &RunList, heads: &Heads) -> bool {
    heads.rate(list).zip(heads.rate(than)).is_some_and(|(rate, shortest)| rate > MUCH_LONGER * shortest)
}

/// A walk through all runs goes through a list of fewer of them, where there is one in the same order.
fn through_fewer(walk: &Walk, options: &Options, heads: &Heads, estimates: &Estimates) -> Walk {
    let mut walk = walk.clone();
    if walk.segments == [RunList::Runs] {
        let shortest = joined(options, heads, estimates).into_iter().next();
        walk.segments = vec![shortest.unwrap_or(RunList::Runs)];
    }
    walk
}

/// Lists to narrow a path by: those whose entries cost less than the runs that they leave out; if none does by what is known,
/// still the shortest, for the case that much fewer pass.
fn narrowing(
    path: &AccessPath,
    read: &[RunList],
    options: &Options,
    heads: &Heads,
    estimates: &Estimates,
) -> Vec<RunList> {
    let walked = if let AccessPath::Walk(walk) = path { walk.segments.as_slice() } else { read };
    let is_unused = |list: &&RunList| {
        let is_used = walked.iter().any(|used| *list == used || is_by_the_same(list, used));
        **list != RunList::Runs && !is_used && !read.iter().any(|used| is_much_longer(list, used, heads))
    };
    let unused = || options.lists.iter().filter(is_unused);
    let worth = cheapest_of(unused(), estimates, |narrow_by| estimates.in_order(read, narrow_by));
    let shortest = || unused().min_by(|left, right| estimates.share(left).total_cmp(&estimates.share(right)));
    if worth.is_empty() { shortest().into_iter().cloned().collect() } else { worth }
}

/// Whether both are of one metric, or of statuses: the filter's ranges are in the segments of a walk already.
fn is_by_the_same(list: &RunList, walked: &RunList) -> bool {
    match (list, walked) {
        (
            RunList::ByMetric { key, .. },
            RunList::ByMetric { key: walked, .. } | RunList::NotANumber { key: walked },
        ) => key == walked,
        (RunList::ByStatus(_), RunList::ByStatus(_)) => true,
        _ => false,
    }
}

/// The lists whose entries cost less than the runs that they leave out.
fn worth_gathering(options: &Options, estimates: &Estimates) -> Vec<RunList> {
    let lists = options.lists.iter().filter(|list| **list != RunList::Runs);
    cheapest_of(lists, estimates, |lists| if lists.is_empty() { estimates.whole() } else { estimates.gather(lists) })
}

/// Adds list after list, those of the fewest runs first, as long as it gets cheaper.
fn cheapest_of<'a>(
    lists: impl Iterator<Item = &'a RunList>,
    estimates: &Estimates,
    cost: impl Fn(&[RunList]) -> Cost,
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
