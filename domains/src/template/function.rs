//! A function with its environment, its log group, its permissions, and what invokes it.

use std::fmt::Write;

use domain::{EnvironmentSetting, Function, FunctionUrl, Package, Queue, QueueRole, TableActions};

use super::role::role;
use super::text::{ACCESS_TABLE, BUCKET, DESTINATION, TABLE, comment};

/// Returns the variables of the function's environment.
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
        text.push_str("          PASSWORDS: !Ref Passwords\n");
        text.push_str("          PASSWORD_ADMINISTRATORS: !Ref PasswordAdministrators\n");
    }
    text.push_str("          WORKSPACES: !Ref Workspaces\n");
    for setting in function.settings {
        let lines = match setting {
            EnvironmentSetting::Artifacts => {
                format!(
                    "          ARTIFACT_ROOT: !If [IsDirect, {DESTINATION}, \"mlflow-artifacts:/\"]\n          ARTIFACTS_DESTINATION: {DESTINATION}\n"
                )
            }
            EnvironmentSetting::PresignedOnly => {
                "          ARTIFACTS_PRESIGNED_ONLY: !If [SendsByUrls, \"true\", \"false\"]\n".to_owned()
            }
            EnvironmentSetting::MaxArtifactSize => "          MAX_ARTIFACT_SIZE: !Ref MaxArtifactSize\n".to_owned(),
            EnvironmentSetting::ArtifactsOrigin => format!(
                "          # The page may read files from this origin.\n          ARTIFACTS_ORIGIN: !Sub\n            - https://${{Bucket}}.s3.${{AWS::Region}}.${{AWS::URLSuffix}}\n            - Bucket: {BUCKET}\n"
            ),
            EnvironmentSetting::SealsSecrets | EnvironmentSetting::OpensSecrets => {
                "          SECRETS_KEY: !Ref SecretsKey\n".to_owned()
            }
            EnvironmentSetting::RunIndexingInterval => {
                "          RUN_INDEXING_INTERVAL: !Ref RunIndexingInterval\n".to_owned()
            }
        };
        text.push_str(&lines);
    }
    for secret in function.secrets {
        let name = secret.name.trim_end_matches("/*");
        let _ = writeln!(text, "          {}: !Sub /mlflow/${{AWS::StackName}}/{name}", secret.variable);
    }
    for key in function.keys {
        let _ = writeln!(text, "          {}: !GetAtt {}.Arn", key.variable, key.resource);
    }
    for queue in function.queues {
        if let QueueRole::Sends { variable } = queue.role {
            let _ = writeln!(text, "          {variable}: !Ref {}", queue.resource);
        }
    }
    text
}

/// Returns the properties that select the program of the function.
fn program(function: &Function) -> String {
    match function.package {
        Package::Zip => format!("      CodeUri: functions/{}\n", function.name),
        Package::Image { parameter } => format!("      PackageType: Image\n      ImageUri: !Ref {parameter}\n"),
    }
}

/// Returns a queue with its dead-letter queue, and the event source mapping that invokes the
/// queue's consumer. Messages stay invisible for six times the consumer's timeout, as AWS
/// recommends.
fn consumed_queue(function: &Function, queue: &Queue, batch: u32, attempts: u32) -> String {
    let Queue { resource, .. } = queue;
    format!(
        "  {resource}:\n    Type: AWS::SQS::Queue\n    Properties:\n      SqsManagedSseEnabled: true\n      VisibilityTimeout: {}\n      \
         RedrivePolicy: {{ deadLetterTargetArn: !GetAtt {resource}Failures.Arn, maxReceiveCount: {attempts} }}\n\n  \
         {resource}Failures:\n    Type: AWS::SQS::Queue\n    Properties:\n      SqsManagedSseEnabled: true\n      \
         MessageRetentionPeriod: 1209600 # 14 days\n\n  {resource}Mapping:\n    Type: AWS::Lambda::EventSourceMapping\n    Properties:\n      \
         FunctionName: !Ref {}Function\n      EventSourceArn: !GetAtt {resource}.Arn\n      BatchSize: {batch}\n      \
         FunctionResponseTypes: [ReportBatchItemFailures]\n\n",
        function.timeout * 6,
        function.resource,
    )
}

/// Returns the URL of a function with its permissions. Since October 2025, callers need permission
/// for both `lambda:InvokeFunctionUrl` and `lambda:InvokeFunction`.
fn url(function: &Function, url: FunctionUrl) -> String {
    let Function { resource, .. } = function;
    let auth = if url.is_signed { "AWS_IAM" } else { "NONE" };
    let mode = if url.streams { "RESPONSE_STREAM" } else { "BUFFERED" };
    let mut text = format!(
        "  {resource}Url:\n    Type: AWS::Lambda::Url\n    Properties:\n      TargetFunctionArn: !Ref {resource}Function\n      \
         AuthType: {auth}\n      InvokeMode: {mode}\n\n"
    );
    if !url.is_signed {
        for (name, action, limit) in [
            ("UrlPermission", "lambda:InvokeFunctionUrl", "FunctionUrlAuthType: NONE"),
            ("UrlInvokePermission", "lambda:InvokeFunction", "InvokedViaFunctionUrl: true"),
        ] {
            let _ = write!(
                text,
                "  {resource}{name}:\n    Type: AWS::Lambda::Permission\n    Properties:\n      Action: {action}\n      \
                 FunctionName: !Ref {resource}Function\n      Principal: \"*\"\n      {limit}\n\n"
            );
        }
    }
    text
}

/// Returns the function and all resources that belong to it.
pub(super) fn function(function: &Function) -> String {
    let Function { name, resource, .. } = function;
    let mut text = comment(2, function.description);
    let build =
        if function.package == Package::Zip { "    Metadata:\n      BuildMethod: rust-cargolambda\n" } else { "" };
    let _ = write!(
        text,
        "  {resource}Function:\n    Type: AWS::Serverless::Function\n{build}    Properties:\n      \
         FunctionName: !Sub ${{AWS::StackName}}-{name}\n{}      Role: !GetAtt {resource}FunctionRole.Arn\n      MemorySize: {}\n      Timeout: {}\n",
        program(function),
        function.memory,
        function.timeout
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
    if let Some(own) = function.url {
        text += &url(function, own);
    }
    for queue in function.queues {
        if let QueueRole::Consumes { batch, attempts } = queue.role {
            text += &consumed_queue(function, queue, batch, attempts);
        }
    }
    let _ = write!(
        text,
        "  {resource}Log:\n    Type: AWS::Logs::LogGroup\n    Properties:\n      LogGroupName: !Sub /aws/lambda/${{AWS::StackName}}/{name}\n      \
         RetentionInDays: !Ref LogRetention\n      KmsKeyId: !If [HasLogKey, !Ref LogKey, !Ref AWS::NoValue]\n\n"
    );
    if function.table.as_ref().is_some_and(|rights| rights.actions.writes()) {
        text += &metric(resource, "Partitions", "a partition is nearly full", "PartitionsNearlyFull");
    }
    if !function.paths.is_empty() {
        text += &metric(resource, "Throttled", "call throttled", "CallsThrottled");
    } else if function.table.as_ref().is_some_and(|rights| rights.actions == TableActions::Index) {
        // If the table was throttled or unavailable, the stream delivers the unprocessed records of
        // a batch again.
        text += &metric(resource, "Throttled", "the rest of a batch has to come again", "CallsThrottled");
    }
    text
}

/// Returns a metric filter that counts a message in the function's log.
fn metric(resource: &str, name: &str, message: &str, counted: &str) -> String {
    format!(
        "  {resource}{name}Metric:\n    Type: AWS::Logs::MetricFilter\n    Properties:\n      LogGroupName: !Ref {resource}Log\n      \
         FilterPattern: '{{ $.fields.message = \"{message}\" }}'\n      MetricTransformations:\n        \
         - {{ MetricNamespace: !Sub \"mlflow/${{AWS::StackName}}\", MetricName: {counted}, MetricValue: \"1\" }}\n\n"
    )
}
