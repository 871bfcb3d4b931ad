//! The checks of a deployed stack. Each check depends only on the facts (`stack_facts.rs`).

use std::collections::BTreeMap;

use domains::functions;
use entities::layout::{CURRENT_LAYOUT, FIRST_LAYOUT};
use fts_indexer::filter_patterns;
use key_schema::definition::{ACCESS, DATA, PK, SK, TableDefinition};
use serde_json::json;

use super::aws_requests::MAX_CLOCK_SKEW_SECONDS;
use super::fact_reader::INDEXER;
use super::function_rights::{is_allowed, needed_rights};
use super::stack_facts::{CorsRule, DeployedFunction, FactResult, LifecycleRule, StackFacts, TableFacts};

/// A problem, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) what: String,
    pub(super) remedy: String,
}

pub(super) fn finding(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { what: what.into(), remedy: remedy.into() }
}

/// Age in ms from which an unindexed change is considered overdue. The longest `IndexingDelay` is
/// five minutes.
const OVERDUE_AFTER_MS: i64 = 600_000;
/// Longest time in seconds for which a throttled call occupies its sandbox.
const THROTTLED_CALL_SECONDS: f64 = 0.5;
/// Names of the stack's outputs that contain origins. Pages of these origins request files from the
/// bucket.
const ORIGIN_OUTPUTS: [&str; 4] = ["TrackingUri", "UsersUri", "DomainUri", "UsersDomainUri"];

/// Returns all problems, and the facts that could not be checked.
pub(super) fn findings(facts: &StackFacts) -> Vec<Finding> {
    let checks: [fn(&StackFacts) -> Vec<Finding>; 15] = [
        clock,
        deployment,
        missing_functions,
        ui_layer,
        mapping,
        lag,
        rights,
        bucket_region,
        cors,
        lifecycle,
        table,
        layout,
        protection,
        sandboxes,
        unread_facts,
    ];
    checks.iter().flat_map(|check| check(facts)).collect()
}

/// Returns the finding that no stack of this name exists.
pub(super) fn missing_stack(stack: &str, region: &str, tracking_uri: Option<&str>) -> Finding {
    let of_uri = tracking_uri.and_then(|uri| uri.split_once(".execute-api.")?.1.split('.').next());
    let other = of_uri.filter(|other| *other != region);
    let known = other.map(|other| format!(" MLFLOW_TRACKING_URI points to {other}.")).unwrap_or_default();
    finding(
        format!("There is no stack {stack} in {region}."),
        format!("Check the region (AWS_REGION or --region) and the name (--stack).{known}"),
    )
}

pub(super) fn clock(facts: &StackFacts) -> Vec<Finding> {
    let ahead = facts.clock_ahead;
    if ahead.abs() <= MAX_CLOCK_SKEW_SECONDS {
        return Vec::new();
    }
    let (minutes, side) = (ahead.abs() / 60, if ahead > 0 { "slow" } else { "fast" });
    vec![finding(
        format!("The clock of this machine is {minutes} minutes {side}."),
        "AWS refuses signatures that are off by more than five minutes. Set the clock, for example by `chronyd` or `timedatectl \
         set-ntp true`.",
    )]
}

fn deployment(facts: &StackFacts) -> Vec<Finding> {
    let status = &facts.description.status;
    let is_well = status.ends_with("_COMPLETE") && !status.contains("DELETE") && *status != "ROLLBACK_COMPLETE";
    if is_well {
        return Vec::new();
    }
    vec![finding(
        format!("The stack is in the state {status}."),
        "Wait until the current deployment has finished. If it has failed, `make deploy` shows what to do.",
    )]
}

fn deployed(facts: &StackFacts) -> impl Iterator<Item = (&'static str, Option<&DeployedFunction>)> {
    facts.functions.iter().filter_map(|(name, seen)| Some((*name, seen.as_ref().ok()?.as_ref())))
}

fn missing_functions(facts: &StackFacts) -> Vec<Finding> {
    let judge = |(name, function): (&str, Option<&DeployedFunction>)| match function {
        None => Some(finding(
            format!("The function {}-{name} is missing.", facts.stack),
            "Deploy again: `make deploy`. If CloudFormation detects no change, delete the stack and deploy a new one on its tables.",
        )),
        Some(DeployedFunction { reserved: Some(0), .. }) => Some(finding(
            format!("The function {}-{name} cannot be invoked: its reserved concurrency is 0.", facts.stack),
            format!("aws lambda delete-function-concurrency --function-name {}-{name}", facts.stack),
        )),
        Some(_) => None,
    };
    deployed(facts).filter_map(judge).collect()
}

fn ui_layer(facts: &StackFacts) -> Vec<Finding> {
    let wants_layer = |name: &str| functions().any(|function| function.name == name && function.layer.is_some());
    let without = deployed(facts)
        .filter(|(name, function)| wants_layer(name) && function.is_some_and(|function| function.layers.is_empty()));
    let judge = |(name, _): (&str, Option<&DeployedFunction>)| {
        let function = format!("{}-{name}", facts.stack);
        finding(
            format!("The function {function} has no layer, so there is no user interface."),
            format!(
                "Find the layer's ARN with `aws cloudformation describe-stack-resources --stack-name {} --query \
                 \"StackResources[?ResourceType=='AWS::Lambda::LayerVersion'].PhysicalResourceId\" --output text`, then run `aws lambda \
                 update-function-configuration --function-name {function} --layers ARN`. If there is none, run `make ui` and `make deploy`.",
                facts.stack
            ),
        )
    };
    without.map(judge).collect()
}

fn mapping(facts: &StackFacts) -> Vec<Finding> {
    let Ok(mapping) = &facts.mapping else { return Vec::new() };
    let Some(mapping) = mapping else {
        return vec![finding(
            format!("The mapping from the table's stream to {}-{INDEXER} is missing: nothing is indexed.", facts.stack),
            "Deploy again: `make deploy`. If it was missing for a day or longer, run `mlflow-serverless reindex` after that.",
        )];
    };
    let mut found = Vec::new();
    if mapping.state.starts_with("Disabl") {
        found.push(finding(
            format!("The mapping from the table's stream to the indexer is {}: nothing is indexed.", mapping.state),
            format!(
                "aws lambda update-event-source-mapping --uuid {} --enabled. If it was disabled for a day or longer, run `mlflow-serverless \
                 reindex` after that.",
                mapping.id
            ),
        ));
    }
    if mapping.last_result.starts_with("PROBLEM") {
        found.push(finding(
            format!("The mapping from the table's stream to the indexer reports: {}.", mapping.last_result),
            format!(
                "Check the log of {}-{INDEXER}, and its throttles. The batch is retried until it succeeds.",
                facts.stack
            ),
        ));
    }
    let expected = filter_patterns();
    let is_as_expected =
        mapping.filters.len() == expected.len() && expected.iter().all(|one| mapping.filters.contains(one));
    if !is_as_expected {
        let filters = expected.map(|pattern| json!({ "Pattern": pattern.to_string() }));
        found.push(finding(
            "The filter of the mapping from the table's stream to the indexer was changed.",
            format!(
                "aws lambda update-event-source-mapping --uuid {} --filter-criteria '{}'. Then run `mlflow-serverless reindex`: \
                 changes that the filter dropped are not delivered again.",
                mapping.id,
                json!({ "Filters": filters })
            ),
        ));
    }
    found
}

/// Checks the age of the oldest change that is not indexed. A change is overdue if it reached the
/// indexer late, or if the indexer has postponed it and has not come back to it in time.
fn lag(facts: &StackFacts) -> Vec<Finding> {
    let overdue = facts.oldest_due.clone().ok().flatten().map(|due| facts.now - due);
    #[expect(clippy::cast_possible_truncation, reason = "fractions of a ms are irrelevant")]
    let came = facts.iterator_age.clone().ok().flatten().map(|age| age as i64);
    let Some(age) = overdue.max(came).filter(|age| *age > OVERDUE_AFTER_MS) else { return Vec::new() };
    vec![finding(
        format!("The indexer lags: the oldest change that is not indexed is {} minutes old.", age / 60_000),
        format!(
            "Check the log of {0}-{INDEXER}, its throttles, and whether the rule `IndexerTick` is enabled (`aws events \
             list-rule-names-by-target`). Meanwhile, searches return correct results, but cost more. Changes older than 24 hours need \
             `mlflow-serverless reindex`.",
            facts.stack
        ),
    )]
}

fn rights(facts: &StackFacts) -> Vec<Finding> {
    let mut found = Vec::new();
    for function in functions() {
        let role = facts.functions.get(function.name).and_then(|seen| seen.as_ref().ok()?.as_ref());
        let statements = facts.rights.get(function.name).and_then(|seen| seen.as_ref().ok());
        let (Some(DeployedFunction { role, .. }), Some(statements)) = (role, statements) else { continue };
        let mut lacking: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for right in needed_rights(function, role, facts) {
            if !is_allowed(statements, &right) {
                lacking.entry(right.1).or_default().push(right.0);
            }
        }
        if lacking.is_empty() {
            continue;
        }
        let lacking: Vec<_> =
            lacking.iter().map(|(resource, actions)| format!("{} on {resource}", actions.join(", "))).collect();
        let name = role.rsplit('/').next().unwrap_or_default();
        found.push(finding(
            format!("The role of {}-{} lacks {}.", facts.stack, function.name, lacking.join("; ")),
            format!(
                "Restore it in the role's policy: `aws iam get-role-policy --role-name {name} --policy-name {}`, then `put-role-policy`. \
                 template.yaml contains the expected policy. A deployment alone does not revert manual changes.",
                function.name
            ),
        ));
    }
    found
}

fn bucket_region(facts: &StackFacts) -> Vec<Finding> {
    let said = facts.cors.as_ref().err().and_then(|unread| unread.bucket_region.as_ref());
    let Some(region) = said.filter(|region| **region != facts.region) else { return Vec::new() };
    let (bucket, _) = facts.description.bucket();
    vec![finding(
        format!(
            "The bucket {bucket} is in {region}, and the stack is in {}: they must be in the same region.",
            facts.region
        ),
        "The stack signs URLs for its own region. Use a bucket in that region: `make deploy PARAMETERS=ArtifactRoot=s3://BUCKET`.",
    )]
}

fn cors(facts: &StackFacts) -> Vec<Finding> {
    let Ok(rules) = &facts.cors else { return Vec::new() };
    let origins: Vec<_> =
        ORIGIN_OUTPUTS.iter().map(|name| facts.description.output(name)).filter(|uri| !uri.is_empty()).collect();
    let missing: Vec<_> =
        origins.iter().filter(|origin| !rules.iter().any(|rule| admits(rule, origin))).copied().collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let (bucket, _) = facts.description.bucket();
    let rule = json!({ "CORSRules": [{
        "AllowedOrigins": origins, "AllowedMethods": ["GET", "PUT"], "AllowedHeaders": ["*"], "ExposeHeaders": ["ETag"],
        "MaxAgeSeconds": 3600,
    }] });
    vec![finding(
        format!(
            "The bucket {bucket} has no CORS rule for {}: browsers cannot download or upload files.",
            missing.join(", ")
        ),
        format!(
            "aws s3api put-bucket-cors --bucket {bucket} --cors-configuration '{rule}' (this replaces its {} present rules)",
            rules.len()
        ),
    )]
}

fn admits(rule: &CorsRule, origin: &str) -> bool {
    let has_origin = rule.origins.iter().any(|allowed| match allowed.split_once('*') {
        Some((before, after)) => origin.starts_with(before) && origin.ends_with(after),
        None => allowed == origin,
    });
    let has_methods = ["GET", "PUT"].iter().all(|method| rule.methods.contains(*method));
    has_origin
        && has_methods
        && rule.headers.contains("*")
        && rule.exposed.iter().any(|header| header.eq_ignore_ascii_case("etag"))
}

fn lifecycle(facts: &StackFacts) -> Vec<Finding> {
    let Ok(rules) = &facts.lifecycle else { return Vec::new() };
    let (bucket, prefix) = facts.description.bucket();
    let answers = if prefix.is_empty() { ".answers/".to_owned() } else { format!("{prefix}/.answers/") };
    let has = |is: &dyn Fn(&LifecycleRule) -> bool, below: &str| {
        rules.iter().any(|rule| rule.is_enabled && is(rule) && below.starts_with(&rule.prefix))
    };
    let mut missing = Vec::new();
    if !has(&|rule| rule.ends_uploads, &answers.replace(".answers/", "")) {
        missing.push("removes incomplete uploads".to_owned());
    }
    if !has(&|rule| rule.expires, &answers) {
        missing.push(format!("removes objects below {answers}"));
    }
    if missing.is_empty() {
        return Vec::new();
    }
    let configuration = json!({ "Rules": [
        { "ID": "remove-unfinished-uploads", "Status": "Enabled", "Filter": { "Prefix": "" },
          "AbortIncompleteMultipartUpload": { "DaysAfterInitiation": 7 } },
        { "ID": "remove-long-answers", "Status": "Enabled", "Filter": { "Prefix": answers }, "Expiration": { "Days": 1 } },
    ] });
    vec![finding(
        format!("The bucket {bucket} has no lifecycle rule that {}.", missing.join(", and none that ")),
        format!(
            "aws s3api put-bucket-lifecycle-configuration --bucket {bucket} --lifecycle-configuration '{configuration}' (this replaces its \
             {} present rules. A stack's own bucket also removes versions after 30 days)",
            rules.len()
        ),
    )]
}

/// Returns the data table and the access table with their definitions.
fn tables(facts: &StackFacts) -> [(&str, &FactResult<Option<TableFacts>>, &'static TableDefinition); 2] {
    [
        (facts.description.output("TableName"), &facts.table, &DATA),
        (facts.description.output("AccessTableName"), &facts.access_table, &ACCESS),
    ]
}

fn table(facts: &StackFacts) -> Vec<Finding> {
    let judge = |(name, seen, definition): (&str, &FactResult<Option<TableFacts>>, &'static TableDefinition)| {
        match seen {
        Err(_) => None,
        Ok(None) => Some(finding(
            format!("The table {name} is missing in {}.", facts.region),
            "Restore it from its backup, and deploy on the restored table: `make restore`, then `make deploy PARAMETERS=ExistingTable=…`.",
        )),
        Ok(Some(table)) => key_difference(table, definition).map(|other| {
            finding(
                format!("The table {name} has a different layout: {other}."),
                "Keys and local indexes of a table cannot be changed. Use a table with the layout of this version, or omit ExistingTable so \
                 that the stack creates one.",
            )
        }),
    }
    };
    tables(facts).into_iter().filter_map(judge).collect()
}

/// Describes the first difference between the keys of a table and its definition, if there is any.
fn key_difference(table: &TableFacts, definition: &TableDefinition) -> Option<String> {
    let owned = |partition: &str, sort: &str| (partition.to_owned(), sort.to_owned());
    if table.keys != owned(PK, SK) {
        return Some(format!("its keys are {} and {}, not {PK} and {SK}", table.keys.0, table.keys.1));
    }
    let indexes = definition.local_indexes.iter().chain(definition.global_indexes);
    for index in indexes {
        if table.indexes.get(index.name) != Some(&owned(index.partition, index.sort)) {
            return Some(format!("it has no index {} on {} and {}", index.name, index.partition, index.sort));
        }
    }
    (definition.has_stream && !table.has_stream).then(|| "it has no stream with new and old images".to_owned())
}

fn layout(facts: &StackFacts) -> Vec<Finding> {
    // A table without a layout number has never been written to.
    let Ok(Some(layout)) = facts.layout else { return Vec::new() };
    let name = facts.description.output("TableName");
    let what = format!("The table {name} has layout {layout}, and this program requires layout {CURRENT_LAYOUT}.");
    if layout > CURRENT_LAYOUT {
        return vec![finding(
            what,
            "Use the version that wrote the table, or a later one, for this command and for the stack.",
        )];
    }
    if layout < FIRST_LAYOUT {
        return vec![finding(what, "It was written before the first release, and cannot be read. Use another table.")];
    }
    if layout < CURRENT_LAYOUT {
        let region = &facts.region;
        let remedy = format!(
            "mlflow-serverless migrate --dynamodb-endpoint https://dynamodb.{region}.amazonaws.com --table {name} --access-table {}",
            facts.description.output("AccessTableName")
        );
        return vec![finding(what, remedy)];
    }
    Vec::new()
}

fn protection(facts: &StackFacts) -> Vec<Finding> {
    let judge = |(name, seen, _): (&str, &FactResult<Option<TableFacts>>, &'static TableDefinition)| {
        let table = seen.as_ref().ok()?.as_ref()?;
        (!table.is_protected).then(|| {
            finding(
                format!("Deletion protection of the table {name} is off."),
                format!("aws dynamodb update-table --table-name {name} --deletion-protection-enabled (`make deploy` also enables it)"),
            )
        })
    };
    tables(facts).into_iter().filter_map(judge).collect()
}

/// Compares the account's quota of concurrent executions with the number of sandboxes that the
/// admitted requests can occupy if all of them are throttled.
fn sandboxes(facts: &StackFacts) -> Vec<Finding> {
    let Ok(limit) = facts.sandboxes else { return Vec::new() };
    let rate = |parameter, default: f64| facts.description.parameter(parameter).parse().unwrap_or(default);
    let users = if facts.description.output("UsersUri").is_empty() { 0.0 } else { rate("UsersRequestRate", 100.0) };
    let wanted = (rate("RequestRate", 1_000.0) + users) * THROTTLED_CALL_SECONDS;
    #[expect(clippy::cast_precision_loss, reason = "quotas are far below 2^53")]
    let has_enough = limit as f64 >= wanted;
    if has_enough {
        return Vec::new();
    }
    vec![finding(
        format!(
            "The account's quota of {limit} concurrent executions is too small: requests that the stack admits may need {wanted}."
        ),
        "aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1000, or lower \
         RequestRate and UsersRequestRate. Until then, the gateway returns 503 when all are in use, and clients retry.",
    )]
}

/// Reports the facts that could not be read, because their checks did not run and may hide
/// problems.
fn unread_facts(facts: &StackFacts) -> Vec<Finding> {
    let mut unread = Vec::new();
    unread.extend(facts.functions.values().filter_map(|seen| seen.as_ref().err()));
    unread.extend(facts.rights.values().filter_map(|seen| seen.as_ref().err()));
    unread.extend(facts.mapping.as_ref().err());
    unread.extend(facts.table.as_ref().err());
    unread.extend(facts.access_table.as_ref().err());
    unread.extend(facts.layout.as_ref().err());
    unread.extend(facts.oldest_due.as_ref().err());
    unread.extend(facts.iterator_age.as_ref().err());
    unread.extend(facts.cors.as_ref().err());
    unread.extend(facts.lifecycle.as_ref().err());
    unread.extend(facts.sandboxes.as_ref().err());
    // A bucket in another region and a missing table are reported by other checks.
    let is_told = |code: &str| code == "ResourceNotFoundException";
    unread.retain(|unread| unread.bucket_region.as_ref().is_none_or(|region| *region == facts.region));
    unread.retain(|unread| !is_told(&unread.code));
    unread.dedup();
    let judge = |unread: &&super::aws_requests::UnreadFact| {
        finding(
            format!("A request failed, so not everything was checked: {unread}."),
            format!("Grant the caller {}, or check the network, and run doctor again.", unread.request),
        )
    };
    unread.iter().map(judge).collect()
}

#[cfg(test)]
mod tests;
