//! Tests of plans.

mod orders;
mod page;
mod plans;
mod soundness;

use crate::{CommonFields, ListHead, ListHeads, RunFilter, RunList, RunOptions, RunOrder, parse_run_search};

fn parsed(filter: &str, order_by: &[&str]) -> (RunFilter, RunOrder) {
    let order_by: Vec<_> = order_by.iter().map(|&clause| clause.to_owned()).collect();
    parse_run_search(filter, &order_by).unwrap_or_else(|error| panic!("{filter} {order_by:?}: {error}"))
}

fn options(filter: &str, order_by: &[&str]) -> RunOptions {
    let (filter, order) = parsed(filter, order_by);
    RunOptions::of(&filter.asks(), &order.sorting(), &CommonFields::default())
}

fn shown(lists: &[RunList]) -> Vec<String> {
    lists.iter().map(ToString::to_string).collect()
}

/// The length or rate of a list of runs that a test assumes to be known.
#[derive(Clone, Copy, Debug)]
enum Known {
    /// The list has exactly this many entries.
    Whole(usize),
    /// The list has more entries than its head contains. On average, one of its runs starts in this
    /// many ms.
    Every(i64),
}

impl Known {
    fn head(self) -> ListHead {
        match self {
            Self::Whole(0) => ListHead { entries: 0, complete: true, first: None, last: None },
            Self::Whole(entries) => ListHead { entries, complete: true, first: Some(100_000), last: Some(1_000) },
            Self::Every(ms) => {
                let last = 1_000_000_000 - 128 * ms;
                ListHead {
                    entries: ListHead::MAX_ENTRIES,
                    complete: false,
                    first: Some(1_000_000_000),
                    last: Some(last),
                }
            }
        }
    }
}

/// Returns the heads of lists, given by their display names.
fn heads(options: &RunOptions, known: &[(&str, Known)]) -> ListHeads {
    let probes = options.probes();
    for (name, _) in known {
        assert!(shown(&probes).iter().any(|probe| probe == name), "{name} is not among {:?}", shown(&probes));
    }
    let head = |list: RunList| {
        let (_, known) = known.iter().find(|(name, _)| *name == list.to_string())?;
        let head = known.head();
        let head = if list.is_newest_first() { head } else { ListHead { first: None, last: None, ..head } };
        Some((list, head))
    };
    probes.into_iter().filter_map(head).collect()
}
