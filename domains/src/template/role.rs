//! The role of a function: a statement for each right that its declaration names.

use domain::{BucketRight, Function, Indexes, KmsKey, Queue, QueueRole, TableActions, TableRights};

use super::text::{ACCESS_TABLE, BUCKET, PATH, STREAM, TABLE, comment, statement, table_arn};

/// Returns the rights on the table, limited to partition keys with these prefixes unless there are none.
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

/// Returns the statement for a right on the bucket.
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

/// Returns the right to use the key that a parameter of the stack names, if the parameter is set.
fn key_statement(why: &str, key: &str, actions: &[&str]) -> String {
    format!(
        "{}              - !If [Has{key}, {{ Effect: Allow, Action: [{}], Resource: !Ref {key} }}, !Ref AWS::NoValue]\n",
        comment(14, why),
        actions.join(", ")
    )
}

/// Returns the right to use the key of the table.
fn table_key_statement() -> String {
    key_statement(
        "Tables that are encrypted with a key of one's own: DynamoDB asks for it in the caller's name, for writes and the stream, too.",
        "TableKey",
        &["kms:Decrypt"],
    )
}

/// Returns the right to use the key of the bucket. Completing a multipart upload reads its parts, so a
/// function that writes also decrypts.
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

/// Returns the rights of a function whose events come from the table's stream.
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

/// Returns the right to use a key of KMS in the function's own name.
fn kms_statement(key: &KmsKey) -> String {
    statement(key.why, key.actions, &[format!("!GetAtt {}.Arn", key.resource)])
}

/// Returns the right to send to a queue, or to consume it.
fn queue_statement(queue: &Queue) -> String {
    let actions: &[&str] = match queue.role {
        QueueRole::Sends { .. } => &["sqs:SendMessage"],
        QueueRole::Consumes { .. } => {
            &["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
        }
    };
    statement(queue.why, actions, &[format!("!GetAtt {}.Arn", queue.resource)])
}

/// Returns the right to invoke other functions of the stack.
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
    statement("The functions that it invokes.", &["lambda:InvokeFunction"], &resources)
}

/// Returns the role of a function. SAM's own role would allow writing every log group of the account.
pub(super) fn role(function: &Function) -> String {
    let Function { name, resource, .. } = function;
    let mut statements = statement(
        "Its log. Without the right to make the group, a late call makes none after the stack is gone.",
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
        let arn = format!(
            "!Sub arn:${{AWS::Partition}}:ssm:${{AWS::Region}}:${{AWS::AccountId}}:parameter/mlflow/${{AWS::StackName}}/{}",
            secret.name
        );
        statements += &statement(secret.why, &["ssm:GetParameter"], &[arn]);
    }
    statements.extend(function.keys.iter().map(kms_statement));
    statements.extend(function.queues.iter().map(queue_statement));
    statements += &invoke_statement(function.invokes);
    format!(
        "  {resource}FunctionRole:\n    Type: AWS::IAM::Role\n    Properties:\n      AssumeRolePolicyDocument:\n        Version: \"2012-10-17\"\n        \
         Statement:\n          - {{ Effect: Allow, Principal: {{ Service: lambda.amazonaws.com }}, Action: sts:AssumeRole }}\n      Policies:\n        \
         - PolicyName: {name}\n          PolicyDocument:\n            Version: \"2012-10-17\"\n            Statement:\n{statements}\n"
    )
}
