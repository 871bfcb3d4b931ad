//! The API, the functions with their roles and log groups, and their alarms in `template.yaml`.

use std::fmt::Write;

use domain::{BucketRight, Function, Indexes, Setting, TableActions, TableRights};
use domains::functions;

use crate::check_between;

const API: &str = "generated from the list of all domains by `make docs`: the API";
const USERS_API: &str = "generated from the list of all domains by `make docs`: the API of users";
const FUNCTIONS: &str = "generated from the list of all domains by `make docs`: functions";
const ALARMS: &str = "generated from the list of all domains by `make docs`: alarms";

/// Where the bucket's name is, and its path with the prefix of the artifacts. What is added to the root is there for a root that is empty: the parts
/// that are asked for have to exist even where nobody asks.
const BUCKET: &str =
    "!If [HasOwnBucket, !Ref ArtifactBucket, !Select [2, !Split [\"/\", !Sub \"${ArtifactRoot}///\"]]]";
const PATH: &str =
    "!If [HasOwnBucket, !Ref ArtifactBucket, !Select [1, !Split [\"s3://\", !Sub \"${ArtifactRoot}s3://\"]]]";
const DESTINATION: &str = "!If [HasOwnBucket, !Sub \"s3://${ArtifactBucket}\", !Ref ArtifactRoot]";

/// The names of the tables: the stack makes them, or a parameter names one that is there.
const TABLE: &str = "!If [HasOwnTable, !Ref Table, !Ref ExistingTable]";
const ACCESS_TABLE: &str = "!If [HasOwnAccessTable, !Ref AccessTable, !Ref ExistingAccessTable]";
const STREAM: &str = "!If [HasOwnTable, !GetAtt Table.StreamArn, !Sub \"arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/\
                      ${ExistingTable}/stream/${ExistingTableStream}\"]";

/// The ARN of a table, or of what is below it.
fn table_arn(name: &str, below: &str) -> String {
    format!(
        "!Sub [\"arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/${{Name}}{below}\", {{ Name: {name} }}]"
    )
}

/// Comments of the template are no longer than this.
const COMMENT_WIDTH: usize = 100;

/// A comment of several lines, each with this many spaces before it.
fn comment(indent: usize, text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().unwrap();
        if !line.is_empty() && line.len() + word.len() + 1 > COMMENT_WIDTH {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.iter().fold(String::new(), |text, line| format!("{text}{:indent$}# {line}\n", ""))
}

/// A path as API Gateway writes it in a body of `OpenAPI`.
fn gateway_path(path: &str) -> String {
    match path {
        Function::EVERYTHING_ELSE => "/$default".to_owned(),
        path => path.replace("{*path}", "{proxy+}"),
    }
}

fn api(is_signed: bool) -> String {
    let mut text = String::new();
    for function in functions() {
        for path in function.paths {
            let _ = writeln!(text, "          {}:", gateway_path(path));
            text.push_str("            x-amazon-apigateway-any-method:\n");
            if *path == Function::EVERYTHING_ELSE {
                text.push_str("              isDefaultRoute: true\n");
            }
            if path.ends_with("{*path}") && *path != Function::EVERYTHING_ELSE {
                text.push_str(
                    "              parameters: [{ name: proxy, in: path, required: true, schema: { type: string } }]\n",
                );
            }
            if is_signed {
                text.push_str("              security: !If [IsSigned, [{ sigv4: [] }], !Ref AWS::NoValue]\n");
            }
            text.push_str("              responses: { default: { description: What the function answers. } }\n");
            text.push_str("              x-amazon-apigateway-integration:\n");
            text.push_str("                type: aws_proxy\n");
            text.push_str("                httpMethod: POST\n");
            text.push_str("                payloadFormatVersion: \"2.0\"\n");
            // By its name and not by reference: functions know the bucket, whose CORS rule knows the API.
            let _ = writeln!(
                text,
                "                uri: !Sub arn:${{AWS::Partition}}:apigateway:${{AWS::Region}}:lambda:path/2015-03-31/functions/\
                 arn:${{AWS::Partition}}:lambda:${{AWS::Region}}:${{AWS::AccountId}}:function:${{AWS::StackName}}-{}/invocations",
                function.name
            );
        }
    }
    text
}

fn variables(function: &Function) -> String {
    let mut text = String::new();
    if function.table.is_some() || !function.paths.is_empty() {
        let _ = writeln!(text, "          TABLE_NAME: {TABLE}");
    }
    if !function.paths.is_empty() {
        text.push_str("          ACCESS_MODE: !If [HasUsersApi, both, !Ref AccessMode]\n");
        let _ = writeln!(text, "          ACCESS_TABLE_NAME: {ACCESS_TABLE}");
        text.push_str("          DEFAULT_PERMISSION: !Ref DefaultPermission\n");
        text.push_str("          CREATORS: !Ref Creators\n");
        text.push_str("          SIGNED_USER: !Ref SignedUser\n");
    }
    text.push_str("          WORKSPACES: !Ref Workspaces\n");
    for setting in function.settings {
        let lines = match setting {
            Setting::Artifacts => {
                format!(
                    "          ARTIFACT_ROOT: !If [IsDirect, {DESTINATION}, \"mlflow-artifacts:/\"]\n          ARTIFACTS_DESTINATION: {DESTINATION}\n"
                )
            }
            Setting::PresignedOnly => {
                "          ARTIFACTS_PRESIGNED_ONLY: !If [SendsByUrls, \"true\", \"false\"]\n".to_owned()
            }
            Setting::LongestArtifact => "          MAX_ARTIFACT_SIZE: !Ref MaxArtifactSize\n".to_owned(),
            Setting::ArtifactsOrigin => format!(
                "          # The page may read files from there.\n          ARTIFACTS_ORIGIN: !Sub\n            - https://${{Bucket}}.s3.${{AWS::Region}}.${{AWS::URLSuffix}}\n            - Bucket: {BUCKET}\n"
            ),
            Setting::RunIndexingInterval => "          RUN_INDEXING_INTERVAL: !Ref RunIndexingInterval\n".to_owned(),
        };
        text.push_str(&lines);
    }
    text
}

fn statement(why: &str, actions: &[&str], resources: &[String]) -> String {
    let mut text = if why.is_empty() { String::new() } else { comment(14, why) };
    text.push_str("              - Effect: Allow\n");
    let resources: Vec<_> = resources.iter().map(String::as_str).collect();
    for (name, values) in [("Action", actions), ("Resource", resources.as_slice())] {
        match values {
            [value] => {
                let _ = writeln!(text, "                {name}: {value}");
            }
            values => {
                let _ = writeln!(text, "                {name}:");
                for value in values {
                    let _ = writeln!(text, "                  - {value}");
                }
            }
        }
    }
    text
}

fn table_statement(rights: &TableRights) -> String {
    let mut resources = vec![table_arn(TABLE, "")];
    match rights.indexes {
        Indexes::None => {}
        Indexes::All => resources.push(table_arn(TABLE, "/index/*")),
        Indexes::Only(names) => resources.extend(names.iter().map(|name| table_arn(TABLE, &format!("/index/{name}")))),
    }
    statement(rights.why, rights.actions.iam(), &resources)
}

fn bucket_statement(right: BucketRight) -> String {
    let (actions, suffix) = right.iam();
    let resource = match suffix {
        None => format!(
            "!Sub\n                  - arn:${{AWS::Partition}}:s3:::${{Bucket}}\n                  - Bucket: {BUCKET}"
        ),
        Some(suffix) => format!(
            "!Sub\n                  - arn:${{AWS::Partition}}:s3:::${{Path}}{suffix}\n                  - Path: {PATH}"
        ),
    };
    statement(right.why(), actions, &[resource])
}

/// The right to a key that a parameter of the stack names, where it names one.
fn key_statement(why: &str, key: &str, actions: &[&str]) -> String {
    format!(
        "{}              - !If [Has{key}, {{ Effect: Allow, Action: [{}], Resource: !Ref {key} }}, !Ref AWS::NoValue]\n",
        comment(14, why),
        actions.join(", ")
    )
}

fn table_key_statement() -> String {
    key_statement(
        "Tables that are encrypted with a key of one's own: DynamoDB asks for it in the caller's name, for writes and the stream, too.",
        "TableKey",
        &["kms:Decrypt"],
    )
}

/// Joining an upload reads its parts. So a function that writes has to decrypt, too.
fn bucket_key_statement(rights: &[BucketRight]) -> String {
    let writes = |right: &BucketRight| matches!(right, BucketRight::Change | BucketRight::PutAnswers);
    let (why, actions): (_, &[&str]) = if rights.iter().any(writes) {
        (
            "A bucket that is encrypted with a key of one's own. To join the parts of a file, S3 reads them.",
            &["kms:Decrypt", "kms:GenerateDataKey"],
        )
    } else if rights.contains(&BucketRight::Read) {
        ("A bucket that is encrypted with a key of one's own.", &["kms:Decrypt"])
    } else {
        return String::new();
    };
    key_statement(why, "BucketKey", actions)
}

/// What a function needs whose events come from the table's stream.
fn stream_statements() -> String {
    statement(
        "The event source mapping acts with the function's role.",
        &["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"],
        &[STREAM.to_owned()],
    ) + &statement(
        "Asked for when the mapping is made, about any stream of the table.",
        &["dynamodb:ListStreams"],
        &[table_arn(TABLE, "/stream/*")],
    ) + &statement(
        "Where records go that it did not get through.",
        &["sqs:SendMessage"],
        &["!GetAtt IndexerFailures.Arn".to_owned()],
    )
}

/// The role of a function. Made here and not by SAM, which would let it write every log group of the account.
fn role(function: &Function) -> String {
    let Function { name, resource, .. } = function;
    let mut statements = statement(
        "Its log. Without the right to make the group, a late call makes none after the stack is gone.",
        &["logs:CreateLogStream", "logs:PutLogEvents"],
        &[format!("!GetAtt {resource}Log.Arn")],
    );
    statements += &function.table.as_ref().map_or(String::new(), table_statement);
    if function.table.as_ref().is_some_and(|rights| rights.actions == TableActions::Index) {
        statements += &stream_statements();
    }
    if !function.paths.is_empty() {
        let (actions, why) = if function.writes_access {
            (TableActions::Write, "It is the only function that writes the table of access.")
        } else {
            (TableActions::GetMany, "Who is calling, and what roles they have: it may read that, and change nothing.")
        };
        statements += &statement(why, actions.iam(), &[table_arn(ACCESS_TABLE, "")]);
    }
    if function.table.is_some() || !function.paths.is_empty() {
        statements += &table_key_statement();
    }
    statements.extend(function.bucket.iter().map(|right| bucket_statement(*right)));
    statements += &bucket_key_statement(function.bucket);
    for secret in function.secrets {
        statements += &statement("", &["secretsmanager:GetSecretValue"], &[format!("!Ref {secret}")]);
    }
    format!(
        "  {resource}FunctionRole:\n    Type: AWS::IAM::Role\n    Properties:\n      AssumeRolePolicyDocument:\n        Version: \"2012-10-17\"\n        \
         Statement:\n          - {{ Effect: Allow, Principal: {{ Service: lambda.amazonaws.com }}, Action: sts:AssumeRole }}\n      Policies:\n        \
         - PolicyName: {name}\n          PolicyDocument:\n            Version: \"2012-10-17\"\n            Statement:\n{statements}\n"
    )
}

fn function(function: &Function) -> String {
    let Function { name, resource, .. } = function;
    let mut text = comment(2, function.description);
    let _ = write!(
        text,
        "  {resource}Function:\n    Type: AWS::Serverless::Function\n    Metadata:\n      BuildMethod: rust-cargolambda\n    Properties:\n      \
         FunctionName: !Sub ${{AWS::StackName}}-{name}\n      CodeUri: functions/{name}\n      Role: !GetAtt {resource}FunctionRole.Arn\n      MemorySize: {}\n      Timeout: {}\n",
        function.memory, function.timeout
    );
    if function.has_concurrency {
        let _ = writeln!(
            text,
            "      ReservedConcurrentExecutions: !If [Has{resource}Concurrency, !Ref {resource}Concurrency, !Ref AWS::NoValue]"
        );
    }
    let _ = write!(text, "      Environment:\n        Variables:\n{}", variables(function));
    if let Some(layer) = function.layer {
        let _ = writeln!(text, "      Layers: [!Ref {layer}]");
    }
    let _ = write!(
        text,
        "      LoggingConfig:\n        LogGroup: !Ref {resource}Log\n        LogFormat: JSON\n        SystemLogLevel: !Ref SystemLogLevel\n        ApplicationLogLevel: !Ref ApplicationLogLevel\n\n{}",
        role(function)
    );
    if !function.paths.is_empty() {
        for (of, api, condition) in [("", "Api", ""), ("Users", "UsersApi", "    Condition: HasUsersApi\n")] {
            let _ = write!(
                text,
                "  {resource}{of}Permission:\n    Type: AWS::Lambda::Permission\n{condition}    Properties:\n      Action: lambda:InvokeFunction\n      \
                 FunctionName: !Ref {resource}Function\n      Principal: apigateway.amazonaws.com\n      \
                 SourceArn: !Sub arn:${{AWS::Partition}}:execute-api:${{AWS::Region}}:${{AWS::AccountId}}:${{{api}}}/*\n\n"
            );
        }
    }
    let _ = write!(
        text,
        "  {resource}Log:\n    Type: AWS::Logs::LogGroup\n    Properties:\n      LogGroupName: !Sub /aws/lambda/${{AWS::StackName}}/{name}\n      \
         RetentionInDays: 30\n      KmsKeyId: !If [HasLogKey, !Ref LogKey, !Ref AWS::NoValue]\n\n"
    );
    if function.table.as_ref().is_some_and(|rights| rights.actions.writes()) {
        text += &metric(resource, "Partitions", "a partition is nearly full", "PartitionsNearlyFull");
    }
    if !function.paths.is_empty() {
        text += &metric(resource, "Throttled", "call throttled", "CallsThrottled");
    }
    text
}

/// Counts how often a function says something in its log.
fn metric(resource: &str, name: &str, message: &str, counted: &str) -> String {
    format!(
        "  {resource}{name}Metric:\n    Type: AWS::Logs::MetricFilter\n    Properties:\n      LogGroupName: !Ref {resource}Log\n      \
         FilterPattern: '{{ $.fields.message = \"{message}\" }}'\n      MetricTransformations:\n        \
         - {{ MetricNamespace: !Sub \"mlflow/${{AWS::StackName}}\", MetricName: {counted}, MetricValue: \"1\" }}\n\n"
    )
}

fn alarm(resource: &str, name: &str, description: &str) -> String {
    format!(
        "  {resource}{name}:\n    Type: AWS::CloudWatch::Alarm\n    Condition: HasMoreAlarms\n    Properties:\n      AlarmDescription: {description}\n      \
         Namespace: AWS/Lambda\n      MetricName: {name}\n      \
         Dimensions: [{{ Name: FunctionName, Value: !Ref {resource}Function }}]\n      Statistic: Sum\n      Period: 300\n      \
         EvaluationPeriods: 1\n      ComparisonOperator: GreaterThanThreshold\n      Threshold: 0\n      \
         TreatMissingData: notBreaching\n      AlarmActions: !If [HasAlarmTopic, [!Ref AlarmTopic], !Ref AWS::NoValue]\n\n"
    )
}

/// Of functions that answer no requests. Where others fail or are throttled, the API answers 5xx, which has an alarm.
fn alarms() -> String {
    let functions = functions().filter(|function| function.paths.is_empty());
    functions
        .map(|Function { name, resource, .. }| {
            alarm(resource, "Errors", &format!("The function {name} crashed or ran out of time."))
        })
        .collect()
}

fn between(mark: &str, expected: &str) {
    check_between("template.yaml", &format!("--- {mark}: begin"), &format!("--- {mark}: end"), expected);
}

#[test]
fn the_template_says_what_the_list_of_all_domains_says() {
    between(API, &api(true));
    between(USERS_API, &api(false));
    between(FUNCTIONS, &functions().map(function).collect::<String>());
    between(ALARMS, &alarms());
}
