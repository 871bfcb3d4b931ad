//! Sample functions, each with one feature that a declaration can have.

use domain::{
    Function, FunctionUrl, Indexes, KmsKey, Package, Queue, QueueRole, SecretParameter, TableActions, TableRights,
};

use super::{function, generate};

const GREETER: Function = Function {
    name: "greeter",
    resource: "Greeter",
    description: "Greets.",
    paths: &["/greetings/{*path}"],
    ..Function::BASE
};

/// Returns whether the text has this line, apart from surrounding spaces.
fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|candidate| candidate.trim() == line)
}

#[test]
fn a_plain_function_has_a_role_a_log_and_permissions_for_both_apis() {
    let text = function::function(&GREETER);
    for line in [
        "GreeterFunction:",
        "GreeterFunctionRole:",
        "GreeterLog:",
        "GreeterPermission:",
        "GreeterUsersPermission:",
        "CodeUri: functions/greeter",
        "BuildMethod: rust-cargolambda",
    ] {
        assert!(has_line(&text, line), "{line} is missing in {text}");
    }
    for absent in ["sqs:", "kms:Encrypt", "ssm:", "lambda:InvokeFunctionUrl", "LeadingKeys", "AWS::Lambda::Url"] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
}

#[test]
fn a_role_and_a_log_follow_the_parameters_of_the_stack() {
    let text = function::function(&GREETER);
    for line in [
        "Path: !Ref RolePath",
        "PermissionsBoundary: !If [HasBoundary, !Ref PermissionsBoundary, !Ref AWS::NoValue]",
        "RetentionInDays: !Ref LogRetention",
    ] {
        assert!(has_line(&text, line), "{line} is missing in {text}");
    }
    assert!(text.contains("!If [IsTraced, { Effect: Allow, Action: [xray:PutTelemetryRecords, xray:PutTraceSegments]"));
}

#[test]
fn throttling_of_the_consumer_of_the_stream_is_counted() {
    let table = |actions| Some(TableRights { actions, indexes: Indexes::None, why: "It indexes greetings." });
    let indexer = Function { paths: &[], table: table(TableActions::Index), ..GREETER };
    assert!(function::function(&indexer).contains("the rest of a batch has to come again"));
    assert!(!function::function(&Function { table: table(TableActions::Write), ..GREETER }).contains("come again"));
}

#[test]
fn a_secret_is_named_in_the_environment_and_readable() {
    let secrets =
        &[SecretParameter { variable: "CLIENT_SECRET", name: "client-secret", why: "It signs in at the provider." }];
    let text = function::function(&Function { secrets, ..GREETER });
    assert!(has_line(&text, "CLIENT_SECRET: !Sub /mlflow/${AWS::StackName}/client-secret"), "{text}");
    assert!(has_line(&text, "Action: ssm:GetParameter"), "{text}");
    assert!(text.contains(":parameter/mlflow/${AWS::StackName}/client-secret\n"), "{text}");
}

#[test]
fn secrets_below_a_name_are_readable() {
    let secrets = &[SecretParameter { variable: "SECRETS", name: "secrets/*", why: "It signs in at providers." }];
    let text = function::function(&Function { secrets, ..GREETER });
    assert!(has_line(&text, "SECRETS: !Sub /mlflow/${AWS::StackName}/secrets"), "{text}");
    assert!(text.contains(":parameter/mlflow/${AWS::StackName}/secrets/*\n"), "{text}");
}

#[test]
fn a_key_is_named_in_the_environment_and_usable() {
    let keys = &[KmsKey {
        resource: "GreetingKey",
        variable: "GREETING_KEY",
        actions: &["kms:Decrypt", "kms:Encrypt"],
        why: "It seals greetings.",
    }];
    let text = function::function(&Function { keys, ..GREETER });
    assert!(has_line(&text, "GREETING_KEY: !GetAtt GreetingKey.Arn"), "{text}");
    assert!(has_line(&text, "- kms:Encrypt") && has_line(&text, "Resource: !GetAtt GreetingKey.Arn"), "{text}");
}

#[test]
fn a_sender_knows_the_url_of_its_queue_and_a_consumer_has_it_made() {
    let queue = |role| Queue { resource: "Greetings", role, why: "Greetings are sent later." };
    let sends = [queue(QueueRole::Sends { variable: "GREETINGS_QUEUE" })];
    let consumes = [queue(QueueRole::Consumes { batch: 10, attempts: 5 })];
    let (sends, consumes): (&'static [Queue], &'static [Queue]) =
        (Box::leak(Box::new(sends)), Box::leak(Box::new(consumes)));
    let sender = function::function(&Function { queues: sends, ..GREETER });
    assert!(has_line(&sender, "GREETINGS_QUEUE: !Ref Greetings") && has_line(&sender, "Action: sqs:SendMessage"));
    assert!(!sender.contains("AWS::SQS::Queue"), "{sender}");
    let receiving = function::function(&Function { queues: consumes, timeout: 20, ..GREETER });
    for line in [
        "Greetings:",
        "GreetingsFailures:",
        "GreetingsMapping:",
        "VisibilityTimeout: 120",
        "RedrivePolicy: { deadLetterTargetArn: !GetAtt GreetingsFailures.Arn, maxReceiveCount: 5 }",
        "BatchSize: 10",
        "- sqs:ReceiveMessage",
        "- sqs:DeleteMessage",
    ] {
        assert!(has_line(&receiving, line), "{line} is missing in {receiving}");
    }
    assert!(!receiving.contains("sqs:SendMessage"), "{receiving}");
}

#[test]
fn key_prefixes_limit_the_rights_on_the_table() {
    let table =
        || Some(TableRights { actions: TableActions::Read, indexes: Indexes::None, why: "It reads greetings." });
    let text = function::function(&Function { table: table(), key_prefixes: &["GREETING#", "EXP#"], ..GREETER });
    let condition = "ForAllValues:StringLike: { \"dynamodb:LeadingKeys\": [\"GREETING#*\", \"EXP#*\"] }";
    assert!(has_line(&text, condition), "{text}");
    assert!(!function::function(&Function { table: table(), ..GREETER }).contains("LeadingKeys"));
}

#[test]
fn a_function_may_invoke_those_that_it_names() {
    let text = function::function(&Function { invokes: &["traces"], ..GREETER });
    assert!(has_line(&text, "Action: lambda:InvokeFunction"), "{text}");
    assert!(text.contains(":function:${AWS::StackName}-traces\n"), "{text}");
}

#[test]
fn a_url_is_open_to_everyone_only_if_it_is_not_signed() {
    let open = function::function(&Function { url: Some(FunctionUrl { is_signed: false, streams: true }), ..GREETER });
    for line in ["AuthType: NONE", "InvokeMode: RESPONSE_STREAM", "FunctionUrlAuthType: NONE", "Principal: \"*\""] {
        assert!(has_line(&open, line), "{line} is missing in {open}");
    }
    let signed =
        function::function(&Function { url: Some(FunctionUrl { is_signed: true, streams: false }), ..GREETER });
    assert!(has_line(&signed, "AuthType: AWS_IAM") && has_line(&signed, "InvokeMode: BUFFERED"));
    assert!(!signed.contains("Principal: \"*\""), "{signed}");
}

#[test]
fn an_image_replaces_the_program() {
    let package = Package::Image { parameter: "GreeterImage" };
    let text = function::function(&Function { package, ..GREETER });
    assert!(has_line(&text, "PackageType: Image") && has_line(&text, "ImageUri: !Ref GreeterImage"), "{text}");
    assert!(!text.contains("CodeUri") && !text.contains("BuildMethod"), "{text}");
}

#[test]
fn sections_are_replaced_between_their_marks() {
    let mark = |name: &str, edge: &str| {
        format!("  # --- generated from the list of all domains by `make docs`: {name}: {edge}\n")
    };
    let section = |name: &str| format!("before {name}\n{}old\n{}", mark(name, "begin"), mark(name, "end"));
    let template = ["the API", "the API of users", "functions", "alarms"].map(section).concat();
    let once = generate(&template, &[&GREETER]).unwrap();
    assert!(once.contains("GreeterFunction:") && !once.contains("old\n") && once.contains("before alarms\n"));
    assert_eq!(generate(&once, &[&GREETER]).unwrap(), once);
    assert!(generate("no marks", &[&GREETER]).unwrap_err().contains("the API"));
}
