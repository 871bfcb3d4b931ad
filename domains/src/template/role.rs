//! The role of a function, with a statement for each permission in its declaration.

use domain::{BucketRight, EnvironmentSetting, Function, Indexes, KmsKey, Queue, QueueRole, TableActions, TableRights};

use super::text::{ACCESS_TABLE, BUCKET, PATH, STREAM, TABLE, comment, statement, table_arn};

/// Returns the statement for the permissions on the table. If key prefixes are given, it is limited
/// to items whose partition keys start with one of them.
fn table_statement(rights: &TableRights, key_prefixes: &[&str]) -> String {
    let mut resources = vec![table_arn(TABLE, "")];
    match rights.indexes {
        Indexes::None => {}
        Indexes::All => resources.push(table_arn(TABLE, "/index/*")),
        Indexes::Only(names) => resources.extend(names.iter().map(|name| table_arn(TABLE, &format!("/index/{name}")))),
    }
    statement(rights.why, rights.actions.iam(), &resources) + &leading_keys(key_prefixes)
}

/// Returns the condition that limits a statement to partition keys with these prefixes.
fn leading_keys(prefixes: &[&str]) -> String {
    if prefixes.is_empty() {
        return String::new();
    }
    let patterns: Vec<_> = prefixes.iter().map(|prefix| format!("\"{prefix}*\"")).collect();
    format!(
        "                Condition:\n                  ForAllValues:StringLike: {{ \"dynamodb:LeadingKeys\": [{}] }}\n",
        patterns.join(", ")
    )
}

/// Returns the statement for a permission on the bucket.
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

/// Returns the permission to use the KMS key given by a parameter of the stack, if the parameter is
/// set.
fn key_statement(why: &str, key: &str, actions: &[&str]) -> String {
    format!(
        "{}              - !If [Has{key}, {{ Effect: Allow, Action: [{}], Resource: !Ref {key} }}, !Ref AWS::NoValue]\n",
        comment(14, why),
        actions.join(", ")
    )
}

/// Returns the permission to use the table's KMS key.
fn table_key_statement() -> String {
    key_statement(
        "For tables encrypted with a customer managed key. DynamoDB uses the key on behalf of the caller, also for writes and the stream.",
        "TableKey",
        &["kms:Decrypt"],
    )
}

/// Returns the IAM statement that allows a function to use the bucket's KMS key.
fn bucket_key_statement(rights: &[BucketRight]) -> String {
    let mut actions: Vec<_> = rights.iter().flat_map(|right| right.key_actions()).copied().collect();
    actions.sort_unstable();
    actions.dedup();
    let why = if actions.is_empty() {
        return String::new();
    } else if rights.contains(&BucketRight::Change) {
        "For a bucket encrypted with a customer managed key. S3 reads the parts of a multipart upload to complete it."
    } else {
        "For a bucket encrypted with a customer managed key."
    };
    key_statement(why, "BucketKey", &actions)
}

/// Returns the statement for using the KMS key of users' secrets.
fn secrets_key_statement(settings: &[EnvironmentSetting]) -> String {
    let of = |setting, why, action| {
        if settings.contains(&setting) { key_statement(why, "SecretsKey", &[action]) } else { String::new() }
    };
    of(EnvironmentSetting::SealsSecrets, "Encrypts the secrets that users store.", "kms:GenerateDataKey")
        + &of(EnvironmentSetting::OpensSecrets, "Decrypts the secrets that users store.", "kms:Decrypt")
}

/// Returns the permissions of a function that consumes the table's stream.
fn stream_statements() -> String {
    statement(
        "The event source mapping acts with the function's role.",
        &["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"],
        &[STREAM.to_owned()],
    ) + &statement(
        "Required to create the mapping, for all streams of the table.",
        &["dynamodb:ListStreams"],
        &[table_arn(TABLE, "/stream/*")],
    ) + &statement(
        "Destination of records that could not be processed.",
        &["sqs:SendMessage"],
        &["!GetAtt IndexerFailures.Arn".to_owned()],
    )
}

/// Returns the permission to use a KMS key of the function.
fn kms_statement(key: &KmsKey) -> String {
    statement(key.why, key.actions, &[format!("!GetAtt {}.Arn", key.resource)])
}

/// Returns the permission to send to a queue, or to consume it.
fn queue_statement(queue: &Queue) -> String {
    let actions: &[&str] = match queue.role {
        QueueRole::Sends { .. } => &["sqs:SendMessage"],
        QueueRole::Consumes { .. } => {
            &["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
        }
    };
    statement(queue.why, actions, &[format!("!GetAtt {}.Arn", queue.resource)])
}

/// Returns the statement for invoking other functions of the stack.
fn invoke_statement(functions: &[&str]) -> String {
    let arn = |name: &&str| {
        format!(
            "!Sub arn:${{AWS::Partition}}:lambda:${{AWS::Region}}:${{AWS::AccountId}}:function:${{AWS::StackName}}-{name}"
        )
    };
    let resources: Vec<_> = functions.iter().map(arn).collect();
    if resources.is_empty() {
        return String::new();
    }
    statement("Functions that it invokes.", &["lambda:InvokeFunction"], &resources)
}

/// Returns the role of a function. The role that SAM generates would allow writes to every log
/// group of the account.
pub(super) fn role(function: &Function) -> String {
    let Function { name, resource, .. } = function;
    let mut statements = statement(
        "Its log. The role cannot create the log group, so that a late call does not recreate it after the stack was deleted.",
        &["logs:CreateLogStream", "logs:PutLogEvents"],
        &[format!("!GetAtt {resource}Log.Arn")],
    );
    statements +=
        &function.table.as_ref().map_or(String::new(), |rights| table_statement(rights, function.key_prefixes));
    if function.table.as_ref().is_some_and(|rights| rights.actions == TableActions::Index) {
        statements += &stream_statements();
    }
    if !function.paths.is_empty() {
        let (actions, why) = if function.writes_access {
            (TableActions::Write, "The only function that writes the access table.")
        } else {
            (TableActions::GetMany, "Read-only access to users and their roles, to authenticate callers.")
        };
        statements += &statement(why, actions.iam(), &[table_arn(ACCESS_TABLE, "")]);
    }
    if function.table.is_some() || !function.paths.is_empty() {
        statements += &table_key_statement();
    }
    statements.extend(function.bucket.iter().map(|right| bucket_statement(*right)));
    statements += &bucket_key_statement(function.bucket);
    for secret in function.secrets {
        let arn = format!(
            "!Sub arn:${{AWS::Partition}}:ssm:${{AWS::Region}}:${{AWS::AccountId}}:parameter/mlflow/${{AWS::StackName}}/{}",
            secret.name
        );
        statements += &statement(secret.why, &["ssm:GetParameter"], &[arn]);
    }
    statements.extend(function.keys.iter().map(kms_statement));
    statements.extend(function.queues.iter().map(queue_statement));
    statements += &secrets_key_statement(function.settings);
    statements += &invoke_statement(function.invokes);
    statements += &comment(14, "Segments of X-Ray have no ARN.");
    statements.push_str(
        "              - !If [IsTraced, { Effect: Allow, Action: [xray:PutTelemetryRecords, xray:PutTraceSegments], Resource: \"*\" }, !Ref AWS::NoValue]\n",
    );
    format!(
        "  {resource}FunctionRole:\n    Type: AWS::IAM::Role\n    Properties:\n      Path: !Ref RolePath\n      \
         PermissionsBoundary: !If [HasBoundary, !Ref PermissionsBoundary, !Ref AWS::NoValue]\n      AssumeRolePolicyDocument:\n        Version: \"2012-10-17\"\n        \
         Statement:\n          - {{ Effect: Allow, Principal: {{ Service: lambda.amazonaws.com }}, Action: sts:AssumeRole }}\n      Policies:\n        \
         - PolicyName: {name}\n          PolicyDocument:\n            Version: \"2012-10-17\"\n            Statement:\n{statements}\n"
    )
}
