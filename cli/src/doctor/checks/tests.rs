use std::collections::BTreeMap;

use domain::Function;

use super::super::aws_requests::UnreadFact;
use super::super::stack_facts::{EventSourceMapping, PolicyStatement, StackDescription};
use super::*;

const ROLE: &str = "arn:aws:iam::123456789012:role/mlflow-role";
const NOW: i64 = 2_000_000_000_000;

fn described(outputs: &[(&str, &str)], parameters: &[(&str, &str)]) -> StackDescription {
    let owned =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    StackDescription { status: "UPDATE_COMPLETE".to_owned(), outputs: owned(outputs), parameters: owned(parameters) }
}

fn table_of(definition: &TableDefinition) -> TableFacts {
    let owned = |partition: &str, sort: &str| (partition.to_owned(), sort.to_owned());
    let indexes = definition.local_indexes.iter().chain(definition.global_indexes);
    TableFacts {
        keys: owned(PK, SK),
        indexes: indexes.map(|index| (index.name.to_owned(), owned(index.partition, index.sort))).collect(),
        has_stream: definition.has_stream,
        is_protected: true,
    }
}

/// Returns the facts about a healthy stack.
fn healthy_stack() -> StackFacts {
    let set = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let of_function = |function: &Function| DeployedFunction {
        role: ROLE.to_owned(),
        layers: function.layer.into_iter().map(str::to_owned).collect(),
        reserved: None,
    };
    let rule = |prefix: &str, ends_uploads, expires| LifecycleRule {
        is_enabled: true,
        prefix: prefix.to_owned(),
        ends_uploads,
        expires,
    };
    let mut facts = StackFacts {
        stack: "mlflow".to_owned(),
        region: "eu-central-1".to_owned(),
        now: NOW,
        clock_ahead: -2,
        description: described(
            &[
                ("TrackingUri", "https://a.execute-api"),
                ("UsersUri", "https://u.execute-api"),
                ("TableName", "data"),
                ("AccessTableName", "users"),
                ("BucketName", "files"),
                ("IndexerFailuresUrl", "https://sqs/1/failures"),
            ],
            &[("ArtifactRoot", ""), ("RequestRate", "1000"), ("TableKey", ""), ("BucketKey", "")],
        ),
        functions: functions().map(|function| (function.name, Ok(Some(of_function(function))))).collect(),
        rights: BTreeMap::new(),
        mapping: Ok(Some(EventSourceMapping {
            id: "uuid".to_owned(),
            state: "Enabled".to_owned(),
            last_result: "OK".to_owned(),
            filters: filter_patterns().into_iter().rev().collect(),
        })),
        table: Ok(Some(table_of(&DATA))),
        access_table: Ok(Some(table_of(&ACCESS))),
        layout: Ok(Some(CURRENT_LAYOUT)),
        oldest_due: Ok(Some(NOW + 60_000)),
        iterator_age: Ok(Some(5_000.0)),
        cors: Ok(vec![CorsRule {
            origins: set(&["https://a.execute-api", "https://u.*"]),
            methods: set(&["GET", "PUT", "HEAD"]),
            headers: set(&["*"]),
            exposed: set(&["etag"]),
        }]),
        lifecycle: Ok(vec![rule("", true, false), rule(".answers/", false, true)]),
        sandboxes: Ok(1_000),
    };
    let rights = |function: &Function| {
        let allowed = needed_rights(function, ROLE, &facts).into_iter();
        allowed.map(|(action, resource)| allow(action, &resource)).collect::<Vec<_>>()
    };
    facts.rights = functions().map(|function| (function.name, Ok(rights(function)))).collect();
    facts
}

fn allow(action: &str, resource: &str) -> PolicyStatement {
    PolicyStatement {
        allows: true,
        actions: vec![action.to_owned()],
        resources: vec![resource.to_owned()],
        is_conditional: false,
    }
}

fn refused(code: &str, region: Option<&str>) -> UnreadFact {
    UnreadFact {
        request: "s3:GetBucketCORS".to_owned(),
        code: code.to_owned(),
        message: String::new(),
        bucket_region: region.map(str::to_owned),
    }
}

/// Returns the findings after a single change to a healthy stack.
fn findings_after(change: impl FnOnce(&mut StackFacts)) -> Vec<String> {
    let mut facts = healthy_stack();
    change(&mut facts);
    findings(&facts).into_iter().map(|finding| finding.what).collect()
}

fn of_function(facts: &mut StackFacts, name: &'static str, change: impl FnOnce(&mut DeployedFunction)) {
    change(facts.functions.get_mut(name).unwrap().as_mut().unwrap().as_mut().unwrap());
}

fn of_mapping(facts: &mut StackFacts, change: impl FnOnce(&mut EventSourceMapping)) {
    change(facts.mapping.as_mut().unwrap().as_mut().unwrap());
}

fn of_table(facts: &mut StackFacts, change: impl FnOnce(&mut TableFacts)) {
    change(facts.table.as_mut().unwrap().as_mut().unwrap());
}

#[test]
fn nothing_is_found_in_a_stack_that_is_well() {
    assert_eq!(findings_after(|_| {}), Vec::<String>::new());
    // A stack that has never been called has no findings either.
    let idle = findings_after(|facts| {
        facts.layout = Ok(None);
        facts.oldest_due = Ok(None);
        facts.iterator_age = Ok(None);
    });
    assert_eq!(idle, Vec::<String>::new());
    assert_eq!(findings_after(|facts| facts.clock_ahead = 299), Vec::<String>::new());
}

#[test]
fn each_fault_is_named_alone() {
    type Change = fn(&mut StackFacts);
    let cases: [(Change, &str); 24] = [
        (|facts| facts.clock_ahead = 601, "The clock of this machine is 10 minutes slow."),
        (|facts| facts.clock_ahead = -601, "The clock of this machine is 10 minutes fast."),
        (|facts| facts.description.status = "UPDATE_ROLLBACK_FAILED".to_owned(), "The stack is in the state"),
        (|facts| drop(facts.functions.insert("registry", Ok(None))), "The function mlflow-registry is missing."),
        (
            |facts| of_function(facts, "traces", |one| one.reserved = Some(0)),
            "The function mlflow-traces cannot be invoked",
        ),
        (|facts| of_function(facts, "ui", |one| one.layers.clear()), "The function mlflow-ui has no layer"),
        (|facts| facts.mapping = Ok(None), "The mapping from the table's stream to mlflow-fts-indexer is missing"),
        (
            |facts| of_mapping(facts, |one| one.state = "Disabled".to_owned()),
            "The mapping from the table's stream to the indexer is Disabled",
        ),
        (
            |facts| of_mapping(facts, |one| one.last_result = "PROBLEM: Function call failed".to_owned()),
            "The mapping from the table's stream to the indexer reports: PROBLEM",
        ),
        (|facts| of_mapping(facts, |one| drop(one.filters.pop())), "The filter of the mapping"),
        (|facts| of_mapping(facts, |one| one.filters.clear()), "The filter of the mapping"),
        (
            |facts| facts.oldest_due = Ok(Some(NOW - 3_600_000)),
            "The indexer lags: the oldest change that is not indexed is 60 minutes old.",
        ),
        (
            |facts| facts.iterator_age = Ok(Some(1_200_000.0)),
            "The indexer lags: the oldest change that is not indexed is 20 minutes old.",
        ),
        (
            |facts| facts.cors = Err(refused("PermanentRedirect", Some("us-east-1"))),
            "The bucket files is in us-east-1, and the stack is in eu-central-1",
        ),
        (
            |facts| facts.cors = Ok(Vec::new()),
            "The bucket files has no CORS rule for https://a.execute-api, https://u.execute-api",
        ),
        (|facts| facts.cors.as_mut().unwrap()[0].exposed.clear(), "The bucket files has no CORS rule"),
        (
            |facts| facts.lifecycle = Ok(Vec::new()),
            "The bucket files has no lifecycle rule that removes incomplete uploads",
        ),
        (
            |facts| facts.lifecycle.as_mut().unwrap()[1].is_enabled = false,
            "The bucket files has no lifecycle rule that removes objects below .answers/",
        ),
        (|facts| facts.table = Ok(None), "The table data is missing in eu-central-1."),
        (
            |facts| of_table(facts, |one| drop(one.indexes.remove("LSI3"))),
            "The table data has a different layout: it has no index LSI3",
        ),
        (|facts| facts.layout = Ok(Some(CURRENT_LAYOUT + 1)), "The table data has layout 9"),
        (|facts| of_table(facts, |one| one.is_protected = false), "Deletion protection of the table data is off."),
        (|facts| facts.sandboxes = Ok(10), "The account's quota of 10 concurrent executions is too small"),
        (
            |facts| facts.sandboxes = Ok(549),
            "The account's quota of 549 concurrent executions is too small: requests that the stack admits may need 550.",
        ),
    ];
    for (change, expected) in cases {
        let found = findings_after(change);
        assert!(matches!(found.as_slice(), [one] if one.starts_with(expected)), "{expected}: {found:?}");
    }
}

#[test]
fn a_role_without_a_right_is_named_with_it() {
    let found = findings_after(|facts| {
        let statements = facts.rights.get_mut("tracking").unwrap().as_mut().unwrap();
        statements.retain(|statement| statement.actions != ["dynamodb:UpdateItem"]);
    });
    let expected = "The role of mlflow-tracking lacks dynamodb:UpdateItem on arn:aws:dynamodb:eu-central-1:123456789012:table/data.";
    assert_eq!(found, [expected]);
}

#[test]
fn a_bucket_of_ones_own_is_known_by_its_path() {
    let found = findings_after(|facts| {
        facts.description.parameters.insert("ArtifactRoot".to_owned(), "s3://own/a/b".to_owned());
    });
    // The role and the lifecycle rules are still those of the stack's own bucket, so both are
    // reported.
    assert!(found.iter().any(|one| one.contains("s3:GetObject on arn:aws:s3:::own/a/b/any")), "{found:?}");
    assert!(found.iter().any(|one| one.contains("removes objects below a/b/.answers/")), "{found:?}");
}

#[test]
fn what_cannot_be_looked_at_is_told() {
    let found = findings_after(|facts| facts.cors = Err(refused("AccessDenied", None)));
    assert_eq!(found, ["A request failed, so not everything was checked: s3:GetBucketCORS: AccessDenied ."]);
}

#[test]
fn a_stack_that_is_not_there_may_be_in_another_region() {
    let uri = "https://abc.execute-api.us-east-1.amazonaws.com";
    let finding = missing_stack("mlflow", "eu-central-1", Some(uri));
    assert_eq!(finding.what, "There is no stack mlflow in eu-central-1.");
    assert!(finding.remedy.ends_with("MLFLOW_TRACKING_URI points to us-east-1."), "{}", finding.remedy);
    assert!(missing_stack("mlflow", "us-east-1", Some(uri)).remedy.ends_with("(--stack)."));
}
