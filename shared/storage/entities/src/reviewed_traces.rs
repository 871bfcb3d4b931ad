//! The items that refer to a trace and are deleted or changed together with it: the items of review
//! queues, and the numbers of traces that exhibit an issue.

use std::collections::{BTreeSet, HashMap};

use key_schema::{Key, rows};
use mlflow_api::assessments::{Assessment, Judgement};
use mlflow_api::{ExperimentId, IssueId, ReviewQueueId, TraceId};
use table::{Item, Query, Result, Table, Update, Write, number};

use crate::attributes::{ASSESSMENTS, QUEUES, TRACES};
use crate::trace::texts;

/// Maximum number of a trace's items in review queues that are deleted in one transaction with the
/// trace.
pub const MAX_REVIEWS_IN_TRANSACTION: usize = 20;

/// Maximum number of issues for which a trace is counted, so that the writes fit into the
/// transaction that changes the trace.
const MAX_COUNTED_ISSUES: usize = 40;

/// Returns, for each of these traces of an experiment, the keys of the review queue items that
/// refer to the trace, and of the row that lists the trace's queues. Traces that were never in a
/// queue are left out. Sends one request if no trace of the experiment was ever in a queue, and
/// otherwise one more per 100 traces.
pub async fn reviews_of_traces(
    table: &Table,
    experiment: ExperimentId,
    traces: &[&TraceId],
) -> Result<HashMap<TraceId, Vec<Key>>> {
    if traces.is_empty() {
        return Ok(HashMap::new());
    }
    let any = Query::of(rows::ReviewedTrace::all(&experiment)).limit(1);
    if table.query_page(&any).await?.items.is_empty() {
        return Ok(HashMap::new());
    }
    let keys: Vec<_> = traces.iter().map(|trace| rows::ReviewedTrace::key(&experiment, trace)).collect();
    let found = table.get_many(&keys).await?;
    let reviews = found.into_iter().filter_map(|(key, item)| {
        let trace = rows::ReviewedTrace::parse(&key)?.trace;
        let items = queues_of(&item).into_iter().map(|queue| rows::ReviewItem::key(&queue, &trace));
        let keys: Vec<_> = items.chain([key]).collect();
        Some((trace, keys))
    });
    Ok(reviews.collect())
}

/// Deletes the items of review queues that refer to deleted traces. Such items can exist if a
/// request added a trace to a queue while the trace was being deleted, and wrote its item after the
/// deletion had read the trace's items. Sends the same requests as [`reviews_of_traces`], and one
/// more per 25 items.
pub async fn remove_late_reviews(table: &Table, experiment: ExperimentId, traces: &[&TraceId]) -> Result<()> {
    let late = reviews_of_traces(table, experiment, traces).await?;
    table.write_many(Vec::new(), &late.into_values().flatten().collect::<Vec<_>>()).await
}

/// Returns the review queues in the row of a trace. Some of them may have been deleted.
#[must_use]
pub fn queues_of(reviewed: &Item) -> Vec<ReviewQueueId> {
    texts(reviewed, QUEUES).iter().filter_map(|queue| ReviewQueueId::parse(queue)).collect()
}

/// Returns the issues that the assessments in a trace's document name. If there are more than
/// [`MAX_COUNTED_ISSUES`], returns the first ones.
fn issues_in(document: Option<&Item>) -> BTreeSet<IssueId> {
    let stored = document.and_then(|document| document.map(ASSESSMENTS)).into_iter().flat_map(HashMap::values);
    // Most assessments are not about issues, and need not be parsed.
    let stored = stored.filter_map(|stored| stored.as_s().ok()).filter(|json| json.contains(r#""issue""#));
    let issues = stored.filter_map(|json| {
        let assessment = Assessment::from_stored(json)?;
        matches!(assessment.judgement, Judgement::Issue(_)).then(|| IssueId::parse(&assessment.name)).flatten()
    });
    issues.collect::<BTreeSet<_>>().into_iter().take(MAX_COUNTED_ISSUES).collect()
}

/// Returns the writes that update the numbers of traces that exhibit an issue when a trace's
/// document is created, changed or deleted. They have to be part of the transaction that writes the
/// document. Empty if the document's issues stay the same.
#[must_use]
pub fn issue_count_writes(experiment: ExperimentId, before: Option<&Item>, after: Option<&Item>) -> Vec<Write> {
    let (before, after) = (issues_in(before), issues_in(after));
    let count = |issue: &IssueId, change: i64| {
        Write::Update(Update::upsert(rows::IssueTraces::key(&experiment, issue)).add(TRACES, number(change)))
    };
    let gained = after.difference(&before).map(|issue| count(issue, 1));
    let lost = before.difference(&after).map(|issue| count(issue, -1));
    gained.chain(lost).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use table::{Map, map, text};

    use super::*;

    fn document(assessments: &[(&str, &str)]) -> Item {
        let assessment = |(id, name): &(&str, &str)| {
            let sent = json!({"assessment_name": name, "issue": {"issue_name": "n"}});
            let (_, read) = Assessment::read(sent.as_object().unwrap(), 7).unwrap();
            ((*id).to_owned(), text(read.to_stored().to_string()))
        };
        let assessments: Map = assessments.iter().map(assessment).collect();
        Item::new(rows::Trace::key(&TraceId::new(1))).with(ASSESSMENTS, map(assessments))
    }

    #[test]
    fn a_trace_counts_once_per_issue() {
        let writes = |before: &[(&str, &str)], after: &[(&str, &str)]| {
            issue_count_writes(ExperimentId::DEFAULT, Some(&document(before)), Some(&document(after))).len()
        };
        assert_eq!(writes(&[], &[("a-1", "iss-1")]), 1);
        assert_eq!(writes(&[("a-1", "iss-1")], &[("a-1", "iss-1"), ("a-2", "iss-1")]), 0);
        assert_eq!(writes(&[("a-1", "iss-1")], &[("a-1", "iss-2")]), 2);
        assert_eq!(writes(&[], &[("a-1", "no issue")]), 0);
        let deleted = issue_count_writes(ExperimentId::DEFAULT, Some(&document(&[("a-1", "iss-1")])), None);
        assert_eq!(deleted.len(), 1);
    }
}
