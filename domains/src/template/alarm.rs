//! Alarms of functions that do not handle requests. Functions that handle requests need none,
//! because their errors and throttling make the API return 5xx, which has its own alarm.

use domain::Function;

/// Returns an alarm on a metric of Lambda.
fn alarm(resource: &str, name: &str, description: &str) -> String {
    format!(
        "  {resource}{name}:\n    Type: AWS::CloudWatch::Alarm\n    Condition: HasMoreAlarms\n    Properties:\n      AlarmDescription: {description}\n      \
         Namespace: AWS/Lambda\n      MetricName: {name}\n      \
         Dimensions: [{{ Name: FunctionName, Value: !Ref {resource}Function }}]\n      Statistic: Sum\n      Period: 300\n      \
         EvaluationPeriods: 1\n      ComparisonOperator: GreaterThanThreshold\n      Threshold: 0\n      \
         TreatMissingData: notBreaching\n      AlarmActions: !If [HasAlarmTopic, [!Ref AlarmTopic], !Ref AWS::NoValue]\n\n"
    )
}

/// Returns the alarms of a function. Functions that handle requests have none.
pub(super) fn alarms(function: &Function) -> String {
    if !function.paths.is_empty() {
        return String::new();
    }
    let Function { name, resource, .. } = function;
    alarm(resource, "Errors", &format!("The function {name} crashed or timed out."))
}
