//! The ledger of what calls cost: a page of the documents that a test writes, and that it compares with what was committed. A call
//! that got dearer than its budget fails the test; any other change shows in the page's diff. For tests only.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use table::Usage;

/// Rows, and budgets that were not kept.
#[derive(Debug, Default)]
pub struct Ledger {
    rows: String,
    over_budget: Vec<String>,
}

impl Ledger {
    /// Begins a table.
    pub fn section(&mut self, title: &str) {
        let _ = write!(
            self.rows,
            "\n## {title}\n\n| call | requests | budget | write units | of these, indexes | budget | read units |\n\
             |---|---:|---:|---:|---:|---:|---:|\n"
        );
    }

    /// Adds what `calls` equal calls consumed, as the mean of one. The budget is of requests and of write units.
    pub fn row(&mut self, call: &str, budget: Option<(f64, f64)>, usage: &Usage, calls: u32) {
        let calls = f64::from(calls);
        let requests = f64::from(usage.requests) / calls;
        let [writes, indexes, reads] =
            [usage.write_units, usage.local_index_units, usage.read_units].map(|units| units / calls);
        let budgets =
            budget.map_or([String::new(), String::new()], |(requests, writes)| [requests, writes].map(figure));
        let [request_budget, write_budget] = budgets;
        let [shown_requests, writes_shown, indexes, reads] = [requests, writes, indexes, reads].map(figure);
        let _ = writeln!(
            self.rows,
            "| {call} | {shown_requests} | {request_budget} | {writes_shown} | {indexes} | {write_budget} | {reads} |"
        );
        if let Some((most_requests, most_writes)) = budget
            && (requests > most_requests || writes > most_writes)
        {
            self.over_budget.push(format!("{call}: {shown_requests} requests, {writes_shown} write units"));
        }
    }

    /// Begins the table of searches.
    pub fn search_section(&mut self, title: &str) {
        let _ = write!(
            self.rows,
            "\n## {title}\n\n| search | requests | budget | read units | budget | the same, alone in the table |\n\
             |---|---:|---:|---:|---:|---:|\n"
        );
    }

    /// Adds what the page of a search consumed, requests and read units, beside another experiment and without it. The two may
    /// differ by a tenth.
    pub fn search(&mut self, call: &str, budget: Option<(f64, f64)>, beside: (f64, f64), alone: (f64, f64)) {
        let budgets =
            budget.map_or([String::new(), String::new()], |(requests, reads)| [figure(requests), figure(reads)]);
        let shown = |(requests, reads): (f64, f64)| format!("{} / {}", figure(requests), figure(reads));
        let _ = writeln!(
            self.rows,
            "| {call} | {} | {} | {} | {} | {} |",
            figure(beside.0),
            budgets[0],
            figure(beside.1),
            budgets[1],
            shown(alone)
        );
        let is_over = budget.is_some_and(|(requests, reads)| beside.0 > requests || beside.1 > reads);
        let differs = (beside.0 - alone.0).abs() > alone.0 * 0.1 || (beside.1 - alone.1).abs() > alone.1 * 0.1;
        if is_over || differs {
            self.over_budget.push(format!("{call}: {}, alone {}", shown(beside), shown(alone)));
        }
    }

    /// Adds what the first and the fiftieth page of a search consumed; the latter may cost a tenth more.
    pub fn pages(&mut self, call: &str, first: (f64, f64), fiftieth: (f64, f64)) {
        let shown =
            |(requests, reads): (f64, f64)| format!("{} requests, {} read units", figure(requests), figure(reads));
        let _ =
            writeln!(self.rows, "\nPages of 10, {call}: the first {}, the fiftieth {}.", shown(first), shown(fiftieth));
        if fiftieth.1 > first.1 * 1.1 + 1.0 {
            self.over_budget.push(format!("pages, {call}: {}, then {}", shown(first), shown(fiftieth)));
        }
    }

    /// Compares with the committed page in `docs`, which begins with `head`; with `UPDATE_DOCS` in the environment, writes it.
    ///
    /// # Panics
    /// A call is over its budget, or the page is not what was metered.
    pub fn check(&self, page: &str, head: &str) {
        let expected = format!("{head}{}", self.rows);
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let written = std::env::var_os("UPDATE_DOCS").map(|_| fs::write(&path, &expected));
        assert!(matches!(written, None | Some(Ok(()))), "{}: {written:?}", path.display());
        assert!(self.over_budget.is_empty(), "over budget: {:#?}", self.over_budget);
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == expected, "docs/{page} is not what was metered; run `make docs`.\n{expected}");
    }
}

fn figure(value: f64) -> String {
    let rounded = format!("{value:.2}");
    rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
}
