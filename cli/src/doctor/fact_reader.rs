//! Reads the facts about a deployed stack.

use std::collections::{BTreeMap, BTreeSet};

use domain::Function;
use domains::functions;
use entities::attributes::LAYOUT;
use key_schema::definition::{PK, SK};
use key_schema::{Ascending, Key, Shard, rows};
use mlflow_api::proto_json::time_text;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::aws_requests::{AwsRequests, UnreadFact};
use super::stack_facts::{
    CorsRule, DeployedFunction, EventSourceMapping, FactResult, LifecycleRule, PolicyStatement, StackDescription,
    StackFacts, TableFacts,
};
use super::xml::XmlElement;

/// Name of the function that consumes the stream.
pub(super) const INDEXER: &str = "fts-indexer";
/// Period over which the age of changes is evaluated: 15 minutes, in ms and in seconds.
const RECENT_PERIOD_MS: i64 = 900_000;
const RECENT_PERIOD_SECONDS: &str = "900";

/// Returns the description of the stack, or `None` if no stack has this name.
pub(super) async fn description(requests: &AwsRequests, stack: &str) -> FactResult<Option<StackDescription>> {
    let said = match requests.cloudformation("DescribeStacks", &[("StackName", stack)]).await {
        Err(unread) if unread.message.contains("does not exist") => return Ok(None),
        said => said?,
    };
    let Some(member) = said.at(&["DescribeStacksResult", "Stacks", "member"]) else { return Ok(None) };
    let pairs = |of: &str, name: &str, value: &str| {
        let members = member.child(of).into_iter().flat_map(|of| of.all("member"));
        members.map(|one| (one.text_of(name).to_owned(), one.text_of(value).to_owned())).collect()
    };
    Ok(Some(StackDescription {
        status: member.text_of("StackStatus").to_owned(),
        outputs: pairs("Outputs", "OutputKey", "OutputValue"),
        parameters: pairs("Parameters", "ParameterKey", "ParameterValue"),
    }))
}

/// Reads all facts about a stack.
pub(super) async fn facts(
    requests: &AwsRequests,
    stack: &str,
    clock_ahead: i64,
    description: StackDescription,
) -> StackFacts {
    let (mut deployed, mut rights) = (BTreeMap::new(), BTreeMap::new());
    for Function { name, .. } in functions() {
        let function = function(requests, &format!("{stack}-{name}")).await;
        if let Ok(Some(DeployedFunction { role, .. })) = &function {
            rights.insert(*name, statements(requests, role).await);
        }
        deployed.insert(*name, function);
    }
    let table = description.output("TableName");
    let (bucket, _) = description.bucket();
    StackFacts {
        stack: stack.to_owned(),
        region: requests.region.clone(),
        now: requests.now_ms(),
        clock_ahead,
        functions: deployed,
        rights,
        mapping: mapping(requests, &format!("{stack}-{INDEXER}"), table).await,
        table: table_facts(requests, table).await,
        access_table: table_facts(requests, description.output("AccessTableName")).await,
        layout: layout(requests, table).await,
        oldest_due: oldest_due(requests, table).await,
        iterator_age: iterator_age(requests, &format!("{stack}-{INDEXER}")).await,
        cors: cors(requests, bucket).await,
        lifecycle: lifecycle(requests, bucket).await,
        sandboxes: sandboxes(requests).await,
        description,
    }
}

async fn function(requests: &AwsRequests, name: &str) -> FactResult<Option<DeployedFunction>> {
    let said = match requests.lambda("GetFunction", &format!("/2015-03-31/functions/{name}")).await {
        Err(unread) if unread.code.starts_with("ResourceNotFound") || unread.code == "404" => return Ok(None),
        said => said?,
    };
    let layers = said["Configuration"]["Layers"].as_array().into_iter().flatten();
    Ok(Some(DeployedFunction {
        role: text(&said["Configuration"]["Role"]),
        layers: layers.map(|layer| text(&layer["Arn"])).collect(),
        reserved: said["Concurrency"]["ReservedConcurrentExecutions"].as_u64(),
    }))
}

/// Returns the statements of a role's inline policies.
async fn statements(requests: &AwsRequests, role: &str) -> FactResult<Vec<PolicyStatement>> {
    let role = role.rsplit('/').next().unwrap_or_default();
    let said = requests.iam("ListRolePolicies", &[("RoleName", role)]).await?;
    let names = said.at(&["ListRolePoliciesResult", "PolicyNames"]).map(|names| names.texts_of("member"));
    let mut statements = Vec::new();
    for policy in names.unwrap_or_default() {
        let asked = [("RoleName", role), ("PolicyName", policy.as_str())];
        let said = requests.iam("GetRolePolicy", &asked).await?;
        let document = said.at(&["GetRolePolicyResult", "PolicyDocument"]).map_or("", |document| &document.text);
        let document = percent_decode_str(document).decode_utf8_lossy();
        statements.extend(statements_of(&serde_json::from_str(&document).unwrap_or_default()));
    }
    Ok(statements)
}

/// Returns the statements of a policy document. IAM may omit the list around a single statement or
/// a single action.
pub(super) fn statements_of(policy: &Value) -> Vec<PolicyStatement> {
    let read = |statement: &Value| PolicyStatement {
        allows: statement["Effect"] == "Allow",
        actions: texts(&statement["Action"]),
        resources: texts(&statement["Resource"]),
        is_conditional: statement.get("Condition").is_some(),
    };
    match &policy["Statement"] {
        Value::Array(statements) => statements.iter().map(read).collect(),
        Value::Null => Vec::new(),
        statement => vec![read(statement)],
    }
}

async fn mapping(requests: &AwsRequests, function: &str, table: &str) -> FactResult<Option<EventSourceMapping>> {
    let path = format!("/2015-03-31/event-source-mappings/?FunctionName={function}");
    let said = requests.lambda("ListEventSourceMappings", &path).await?;
    let is_of_table = |one: &&Value| {
        let source = one["EventSourceArn"].as_str().unwrap_or_default();
        source.contains(&format!(":table/{table}/stream/"))
    };
    let found = said["EventSourceMappings"].as_array().into_iter().flatten().find(is_of_table);
    Ok(found.map(|one| {
        let filters = one["FilterCriteria"]["Filters"].as_array().into_iter().flatten();
        let pattern = |filter: &Value| filter["Pattern"].as_str().and_then(|text| serde_json::from_str(text).ok());
        EventSourceMapping {
            id: text(&one["UUID"]),
            state: text(&one["State"]),
            last_result: text(&one["LastProcessingResult"]),
            filters: filters.filter_map(pattern).collect(),
        }
    }))
}

async fn table_facts(requests: &AwsRequests, table: &str) -> FactResult<Option<TableFacts>> {
    let said = match requests.dynamodb("DescribeTable", &json!({ "TableName": table })).await {
        Err(unread) if unread.code == "ResourceNotFoundException" => return Ok(None),
        said => said?,
    };
    let table = &said["Table"];
    let indexes = ["LocalSecondaryIndexes", "GlobalSecondaryIndexes"].map(|kind| table[kind].as_array());
    let indexes = indexes.into_iter().flatten().flatten();
    Ok(Some(TableFacts {
        keys: keys(table),
        indexes: indexes.map(|index| (text(&index["IndexName"]), keys(index))).collect(),
        has_stream: table["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES",
        is_protected: table["DeletionProtectionEnabled"] == true,
    }))
}

/// Returns the names of the partition key and sort key.
fn keys(described: &Value) -> (String, String) {
    let of_type = |kind: &str| {
        let mut keys = described["KeySchema"].as_array().into_iter().flatten();
        keys.find(|key| key["KeyType"] == kind).map(|key| text(&key["AttributeName"])).unwrap_or_default()
    };
    (of_type("HASH"), of_type("RANGE"))
}

async fn layout(requests: &AwsRequests, table: &str) -> FactResult<Option<i64>> {
    let Key { pk, sk } = rows::Config::key(&"layout".into());
    let asked = json!({ "TableName": table, "Key": { (PK): { "S": pk }, (SK): { "S": sk } } });
    let said = requests.dynamodb("GetItem", &asked).await?;
    Ok(said["Item"][LAYOUT.name()]["N"].as_str().and_then(|number| number.parse().ok()))
}

/// Returns the time at which the oldest postponed work of the indexer was due. Takes four requests,
/// one per partition of that work.
async fn oldest_due(requests: &AwsRequests, table: &str) -> FactResult<Option<i64>> {
    let mut oldest = None;
    for shard in Shard::all() {
        let range = rows::Postponed::all(&shard).range();
        let (attribute, partition) = range.partition();
        let asked = json!({
            "TableName": table,
            "KeyConditionExpression": format!("{attribute} = :partition"),
            "ExpressionAttributeValues": { ":partition": { "S": partition } },
            "Limit": 1,
        });
        let said = requests.dynamodb("Query", &asked).await?;
        let first = &said["Items"][0];
        let key = Key { pk: text(&first[PK]["S"]), sk: text(&first[SK]["S"]) };
        if let Some(rows::Postponed { due: Ascending(due), .. }) = rows::Postponed::parse(&key) {
            oldest = Some(oldest.unwrap_or(due).min(due));
        }
    }
    Ok(oldest)
}

async fn iterator_age(requests: &AwsRequests, function: &str) -> FactResult<Option<f64>> {
    let now = requests.now_ms();
    let (from, to) = (time_text(now - RECENT_PERIOD_MS), time_text(now));
    let asked = [
        ("Namespace", "AWS/Lambda"),
        ("MetricName", "IteratorAge"),
        ("Dimensions.member.1.Name", "FunctionName"),
        ("Dimensions.member.1.Value", function),
        ("StartTime", from.as_str()),
        ("EndTime", to.as_str()),
        ("Period", RECENT_PERIOD_SECONDS),
        ("Statistics.member.1", "Maximum"),
    ];
    let said = requests.cloudwatch("GetMetricStatistics", &asked).await?;
    let points = said.at(&["GetMetricStatisticsResult", "Datapoints"]);
    let points = points.into_iter().flat_map(|points| points.all("member"));
    Ok(points.filter_map(|point| point.text_of("Maximum").parse().ok()).reduce(f64::max))
}

async fn cors(requests: &AwsRequests, bucket: &str) -> FactResult<Vec<CorsRule>> {
    let said = match requests.bucket("GetBucketCORS", bucket, "cors").await {
        Err(unread) if unread.code == "NoSuchCORSConfiguration" => return Ok(Vec::new()),
        said => said?,
    };
    let texts = |rule: &XmlElement, name| rule.texts_of(name).into_iter().collect::<BTreeSet<_>>();
    let rules = said.all("CORSRule").map(|rule| CorsRule {
        origins: texts(rule, "AllowedOrigin"),
        methods: texts(rule, "AllowedMethod"),
        headers: texts(rule, "AllowedHeader"),
        exposed: texts(rule, "ExposeHeader"),
    });
    Ok(rules.collect())
}

async fn lifecycle(requests: &AwsRequests, bucket: &str) -> FactResult<Vec<LifecycleRule>> {
    let said = match requests.bucket("GetLifecycleConfiguration", bucket, "lifecycle").await {
        Err(unread) if unread.code == "NoSuchLifecycleConfiguration" => return Ok(Vec::new()),
        said => said?,
    };
    let prefix = |rule: &XmlElement| {
        let of_filter = rule.child("Filter").map(|filter| filter.text_of("Prefix"));
        of_filter.filter(|prefix| !prefix.is_empty()).unwrap_or_else(|| rule.text_of("Prefix")).to_owned()
    };
    let rules = said.all("Rule").map(|rule| LifecycleRule {
        is_enabled: rule.text_of("Status") == "Enabled",
        prefix: prefix(rule),
        ends_uploads: rule.child("AbortIncompleteMultipartUpload").is_some(),
        expires: rule.at(&["Expiration", "Days"]).is_some(),
    });
    Ok(rules.collect())
}

async fn sandboxes(requests: &AwsRequests) -> FactResult<u64> {
    let asked = requests.lambda("GetAccountSettings", "/2016-08-19/account-settings/").await?;
    let limit = asked["AccountLimit"]["ConcurrentExecutions"].as_u64();
    limit.ok_or_else(|| UnreadFact {
        request: "lambda:GetAccountSettings".to_owned(),
        code: "200".to_owned(),
        message: "the response has no limit".to_owned(),
        bucket_region: None,
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(one) => vec![one.clone()],
        Value::Array(all) => all.iter().map(text).collect(),
        _ => Vec::new(),
    }
}
