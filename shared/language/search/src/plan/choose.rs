//! Chooses the path of a search.

use super::cost::{self, Cost, Estimates};
use super::heads::Heads;
use super::list::RunList;
use super::options::RunOptions;
use super::plan::{AccessPath, RunPlan, is_rare};
use super::walk::RunWalk;

/// A list this many times longer than the shortest is not joined: reading it costs more than the
/// runs it leaves out.
const MUCH_LONGER: f64 = 50.0;
/// How many lists are joined: as many as are looked at before.
const JOINED: usize = 3;

/// Chooses how a search is carried out: the cheapest of the paths that the options allow, as far as
/// their lists are known. A page has `page_size` runs.
#[must_use]
pub fn choose(options: &RunOptions, heads: &Heads, page_size: usize) -> RunPlan {
    let estimates = Estimates::new(options, heads, page_size);
    let paths = paths(options, heads, &estimates);
    // Of paths that cost the same, the first.
    let cheapest = paths.into_iter().min_by(|left, right| left.cost.weight().total_cmp(&right.cost.weight()));
    let Costed { path, narrow_by, per_run, cost } =
        cheapest.unwrap_or_else(|| Costed::new(AccessPath::Whole, estimates.whole()));
    RunPlan { path, started: options.started, narrow_by, per_run, cost }
}

/// The plan that looks at all runs, the newest first, and reads no list that the indexer keeps.
#[must_use]
pub fn by_time(options: &RunOptions, page_size: usize) -> RunPlan {
    let heads = Heads::default();
    let estimates = Estimates::new(options, &heads, page_size);
    let (per_run, cost) = (estimates.per_run(&[]), estimates.by_time());
    let path = AccessPath::Newest { lists: Vec::new() };
    RunPlan { path, started: options.started, narrow_by: Vec::new(), per_run, cost }
}

/// A path and its cost.
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
    fn in_order(
        path: AccessPath,
        lists: &[RunList],
        options: &RunOptions,
        heads: &Heads,
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

/// The paths worth comparing, those first that are known best.
fn paths(options: &RunOptions, heads: &Heads, estimates: &Estimates<'_>) -> Vec<Costed> {
    if let Some(ids) = &options.ids {
        return vec![Costed::new(AccessPath::Ids(ids.clone()), cost::reads_of(ids.len()))];
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
    if estimates.known_total().is_some() || options.walk.is_none() {
        paths.push(Costed::new(AccessPath::Whole, estimates.whole()));
    }
    match &options.walk {
        // A short list is no worse: it leads to the same order.
        Some(_) if options.newest_first && is_short => {}
        Some(_) if options.newest_first => {
            let lists = joined(options, heads, estimates);
            let read = if lists.is_empty() { vec![RunList::All] } else { lists.clone() };
            paths.push(Costed::in_order(AccessPath::Newest { lists }, &read, options, heads, estimates));
        }
        Some(walk) => {
            let walk = through_fewer(walk, options, heads, estimates);
            let read = match walk.segments.as_slice() {
                [only] => vec![only.clone()],
                // Where one list ends, the next goes on.
                _ => vec![RunList::All],
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
fn joined(options: &RunOptions, heads: &Heads, estimates: &Estimates<'_>) -> Vec<RunList> {
    let narrows = |list: &&RunList| list.is_indexed() && list.is_newest_first();
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

/// A walk through all runs goes through a list of fewer of them, where there is one in the same
/// order.
fn through_fewer(walk: &RunWalk, options: &RunOptions, heads: &Heads, estimates: &Estimates<'_>) -> RunWalk {
    let mut walk = walk.clone();
    if walk.segments == [RunList::All] {
        let shortest = joined(options, heads, estimates).into_iter().next();
        walk.segments = vec![shortest.unwrap_or(RunList::All)];
    }
    walk
}

/// Lists to narrow a path by: those whose entries cost less than the runs that they leave out.
/// If none is known to do so, it is still the shortest, in case that much fewer runs pass.
fn narrowing(
    path: &AccessPath,
    read: &[RunList],
    options: &RunOptions,
    heads: &Heads,
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

/// The lists whose entries cost less than the runs that they leave out.
fn worth_gathering(options: &RunOptions, estimates: &Estimates<'_>) -> Vec<RunList> {
    let lists = options.lists.iter().filter(|list| list.is_indexed());
    cheapest_of(lists, estimates, |lists| if lists.is_empty() { estimates.whole() } else { estimates.gather(lists) })
}

/// Adds list after list, those of the fewest runs first, as long as it gets cheaper.
fn cheapest_of<'a>(
    lists: impl Iterator<Item = &'a RunList>,
    estimates: &Estimates<'_>,
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
