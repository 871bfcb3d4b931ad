//! The page of a ledger.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::pin::Pin;

use table::UsageMeter;

use crate::ledger::cost::{Budget, CostWithBackgroundWork, MeteredCost, figure};
use crate::ledger::metered_processes::MeteredProcesses;

/// A page that is being generated: the metered rows, and the calls that exceed their budget.
#[derive(Debug, Default)]
pub struct CostLedger {
    rows: String,
    over_budget: Vec<String>,
    /// Whether long sections were skipped, so that the page is incomplete.
    is_sample: bool,
    /// Titles of the sections whose [`LedgerSection::LongRest`] was skipped.
    cut: Vec<String>,
}

/// A function that meters a part of a page.
pub type Meters = for<'a> fn(&'a mut CostLedger) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A part of a page.
#[derive(Clone, Copy, Debug)]
pub enum LedgerSection {
    /// A section that every test of the page meters.
    Short(Meters),
    /// A section that keeps a core busy for long. It is only metered by `make docs`, and by tests
    /// with `WHOLE_LEDGERS`.
    Long(Meters),
    /// Further rows of the preceding short section, without a heading of their own. They keep a
    /// core busy for long, so they are only metered together with the long sections.
    LongRest(Meters),
}

/// Environment variables that request the whole page.
const UPDATE_VARIABLE: &str = "UPDATE_DOCS";
const WHOLE_LEDGERS_VARIABLE: &str = "WHOLE_LEDGERS";

impl CostLedger {
    /// Meters the parts of a page concurrently, each on its own thread and runtime, and
    /// concatenates their rows.
    ///
    /// # Panics
    /// Metering a part panics.
    #[must_use]
    pub fn of(sections: &[LedgerSection]) -> Self {
        let is_whole =
            [UPDATE_VARIABLE, WHOLE_LEDGERS_VARIABLE].into_iter().any(|name| std::env::var_os(name).is_some());
        let metered = std::thread::scope(|scope| {
            let wanted = sections.iter().map(|section| match section {
                LedgerSection::Short(meters) => Some(*meters),
                LedgerSection::Long(meters) | LedgerSection::LongRest(meters) => is_whole.then_some(*meters),
            });
            let threads: Vec<_> =
                wanted.map(|meters| meters.map(|meters| scope.spawn(move || Self::of_one(meters)))).collect();
            let joined = threads.into_iter().map(|thread| thread.map(std::thread::ScopedJoinHandle::join));
            joined.collect::<Vec<_>>()
        });
        let mut whole = Self { is_sample: !is_whole, ..Self::default() };
        let mut is_left_out = false;
        for (section, part) in sections.iter().zip(metered) {
            let Some(part) = part else {
                if matches!(section, LedgerSection::Long(_)) {
                    is_left_out = true;
                } else {
                    assert!(!is_left_out, "further rows follow a section that is left out");
                    whole.cut.extend(whole.rows.rsplit(BEFORE_TITLE).next().map(title).map(str::to_owned));
                }
                continue;
            };
            let part = part.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            is_left_out = false;
            whole.rows.push_str(&part.rows);
            whole.over_budget.extend(part.over_budget);
        }
        whole
    }

    #[expect(clippy::expect_used, reason = "a test ends by it")]
    fn of_one(meters: Meters) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime starts");
        let mut ledger = Self::default();
        runtime.block_on(meters(&mut ledger));
        ledger
    }

    /// Starts a table of calls under a heading.
    pub fn section(&mut self, title: &str) {
        let _ = write!(
            self.rows,
            "\n## {title}\n\n\
             | call | cold: requests | write units | read units | warm: requests | write units | read units | writes to indexes |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|\n"
        );
    }

    /// Starts a table of calls that also shows the background work that the calls cause.
    pub fn section_all_in(&mut self, title: &str) {
        let _ = write!(
            self.rows,
            "\n## {title}\n\n\
             | call | requests | write units | read units | all in: requests | write units | read units |\n\
             |---|---:|---:|---:|---:|---:|---:|\n"
        );
    }

    /// Adds a row to a table of calls with background work. `costs` is the consumption of `calls`
    /// equal calls, and the row shows the average. `own` is the budget of a call without background
    /// work: requests, write units and read units. `all_in` is the budget of write units including
    /// the background work.
    pub fn all_in(&mut self, call: &str, own: [f64; 3], all_in: f64, calls: u32, costs: &CostWithBackgroundWork) {
        self.all_in_times(call, own, all_in, 1.0 / f64::from(calls), costs);
    }

    /// Adds a row like [`all_in`](Self::all_in), with the metered consumption multiplied by
    /// `times`. An infinite budget means that there is no limit.
    pub fn all_in_times(&mut self, call: &str, own: [f64; 3], all_in: f64, times: f64, costs: &CostWithBackgroundWork) {
        let [own_cost, following] =
            [&costs.own, &costs.following].map(|usage| MeteredCost::scaled(usage, |units| units * times));
        let all: Vec<f64> =
            own_cost.units.iter().zip(following.units).map(|(own, following)| own + following).collect();
        let with_budget = |units: f64, most: f64| {
            if most.is_finite() { [figure(units), figure(most)].join(" / ") } else { figure(units) }
        };
        let cells: String =
            own_cost.units.iter().zip(own).map(|(units, most)| with_budget(*units, most) + " | ").collect();
        let (requests, read) = (figure(all[0]), figure(all[2]));
        let row = format!("| {call} | {cells}{requests} | {} | {read} |", with_budget(all[1], all_in));
        if !own_cost.is_within(own) || all[1] >= all_in + 0.0051 {
            self.over_budget.push(row.clone());
        }
        let _ = writeln!(self.rows, "{row}");
    }

    /// Adds a row with the consumption of a call, as the first call of a process and as a later
    /// one. The first call acts on the first entity in `on`, and the later call of the same process
    /// on the second.
    pub async fn row<S, T>(
        &mut self,
        call: &str,
        budget: Budget,
        bench: &MeteredProcesses<S>,
        on: [T; 2],
        act: impl AsyncFn(&S, &T),
    ) {
        self.mean(call, budget, bench, on, 1, async |store, on, _| act(store, on).await).await;
    }

    /// Adds a row with the average consumption of `calls` calls. Each call gets its number. For the
    /// cold figures, each call is the first one of a new process.
    pub async fn mean<S, T>(
        &mut self,
        call: &str,
        budget: Budget,
        bench: &MeteredProcesses<S>,
        on: [T; 2],
        calls: u32,
        act: impl AsyncFn(&S, &T, u32),
    ) {
        let [on_cold, on_warm] = on;
        let meter = UsageMeter::default();
        let mut process = bench.process(&meter);
        for number in 0..calls {
            process = bench.process(&meter);
            act(&process, &on_cold, number).await;
        }
        let cold = MeteredCost::mean(&meter.take(), calls);
        for number in 0..calls {
            act(&process, &on_warm, number).await;
        }
        self.add(call, budget, cold, MeteredCost::mean(&meter.take(), calls));
    }

    fn add(&mut self, call: &str, budget: Budget, cold: MeteredCost, warm: MeteredCost) {
        let cells = |cost: MeteredCost, budget: [f64; 3]| -> String {
            let cells = cost.units.iter().zip(budget);
            cells.map(|(units, most)| [figure(*units), figure(most)].join(" / ") + " | ").collect()
        };
        let row =
            format!("| {call} | {}{}{} |", cells(cold, budget.cold), cells(warm, budget.warm), figure(warm.of_indexes));
        if !cold.is_within(budget.cold) || !warm.is_within(budget.warm) {
            self.over_budget.push(row.clone());
        }
        let _ = writeln!(self.rows, "{row}");
    }

    /// Compares the page with the committed one in `docs`, which begins with `head`, or writes it
    /// if `UPDATE_DOCS` is set. If long sections were skipped, the rest of the page must match.
    ///
    /// # Panics
    /// A call exceeds its budget, or the page differs from the metered one.
    pub fn check(&self, page: &str, head: &str) {
        let expected = format!("{head}{}", self.rows);
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference").join(page);
        let written = std::env::var_os(UPDATE_VARIABLE).map(|_| fs::write(&path, &expected));
        assert!(matches!(written, None | Some(Ok(()))), "{}: {written:?}", path.display());
        assert!(self.over_budget.is_empty(), "over budget: {:#?}", self.over_budget);
        let found = fs::read_to_string(&path).unwrap_or_default();
        let found = if self.is_sample { only_sections_of(&found, &expected, &self.cut) } else { found };
        let differs = differences(&found, &expected);
        assert!(found == expected, "docs/reference/{page} is not what was metered; run `make docs`.\n{differs}");
    }
}

/// The text before the title of each section.
const BEFORE_TITLE: &str = "\n## ";

/// Returns the title of a section, which is its first line.
fn title(section: &str) -> &str {
    section.lines().next().unwrap_or_default()
}

/// Returns a page without the sections whose titles are missing in the other page. Sections in
/// `cut` are shortened to the number of lines that they have in the other page, so the removal of
/// their last row goes unnoticed.
fn only_sections_of(page: &str, other: &str, cut: &[String]) -> String {
    let others: Vec<_> = other.split(BEFORE_TITLE).skip(1).collect();
    let (head, sections) = page.split_once(BEFORE_TITLE).unwrap_or((page, ""));
    let mut kept = head.to_owned();
    for section in sections.split(BEFORE_TITLE) {
        let Some(other) = others.iter().find(|other| title(other) == title(section)) else { continue };
        kept.push_str(BEFORE_TITLE);
        let is_cut = cut.iter().any(|cut| cut == title(section));
        let lines = if is_cut { other.lines().count() } else { usize::MAX };
        kept.extend(section.split_inclusive('\n').take(lines));
    }
    kept
}

/// Returns the lines that only one of the pages has: those of the committed page prefixed with `-`,
/// those that were metered prefixed with `+`.
fn differences(found: &str, expected: &str) -> String {
    let only = |sign: &'static str, of: &str, other: &str| {
        let other: Vec<&str> = other.lines().collect();
        let mut lines = String::new();
        for line in of.lines().filter(|line| !other.contains(line)) {
            let _ = writeln!(lines, "{sign} {line}");
        }
        lines
    };
    only("-", found, expected) + &only("+", expected, found)
}
