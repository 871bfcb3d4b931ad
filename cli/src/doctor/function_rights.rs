//! Compares the permissions that each function declares to need with those of its role.

use domain::{Function, Indexes, TableActions};
use key_schema::definition::{GLOBAL_INDEXES, LOCAL_INDEXES};

use super::stack_facts::{PolicyStatement, StackFacts};

/// An action, and the resource on which it must be allowed.
pub(super) type FunctionRight = (&'static str, String);

/// Names of a stack's resources, from which their ARNs are built.
struct ArnNames<'a> {
    partition: &'a str,
    account: &'a str,
    facts: &'a StackFacts,
}

impl ArnNames<'_> {
    fn arn(&self, service: &str, rest: &str) -> String {
        format!("arn:{}:{service}:{}:{}:{rest}", self.partition, self.facts.region, self.account)
    }

    fn table(&self, output: &str, below: &str) -> String {
        self.arn("dynamodb", &format!("table/{}{below}", self.facts.description.output(output)))
    }

    /// Returns the ARN of the objects under this path in the artifact location.
    fn file(&self, below: &str) -> String {
        let (bucket, prefix) = self.facts.description.bucket();
        let prefix = if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
        format!("arn:{}:s3:::{bucket}{prefix}{below}", self.partition)
    }
}

/// Returns the permissions that a function needs. `role` is the ARN of its role.
pub(super) fn needed_rights(function: &Function, role: &str, facts: &StackFacts) -> Vec<FunctionRight> {
    let mut parts = role.split(':').skip(1);
    let names = ArnNames { partition: parts.next().unwrap_or("aws"), account: parts.nth(2).unwrap_or_default(), facts };
    let mut rights = Vec::new();
    let mut add = |actions: &[&'static str], resource: String| {
        rights.extend(actions.iter().map(|action| (*action, resource.clone())));
    };
    let log = format!("log-group:/aws/lambda/{}/{}:log-stream:any", facts.stack, function.name);
    add(&["logs:CreateLogStream", "logs:PutLogEvents"], names.arn("logs", &log));
    if let Some(table) = &function.table {
        add(table.actions.iam(), names.table("TableName", ""));
        let all = || LOCAL_INDEXES.iter().chain(&GLOBAL_INDEXES).map(|index| index.name);
        let indexes: Vec<_> = match table.indexes {
            Indexes::None => Vec::new(),
            Indexes::Only(names) => names.to_vec(),
            Indexes::All => all().collect(),
        };
        for index in indexes {
            add(&["dynamodb:Query"], names.table("TableName", &format!("/index/{index}")));
        }
        if table.actions == TableActions::Index {
            let stream = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"];
            add(&stream, names.table("TableName", "/stream/any"));
            let queue = facts.description.output("IndexerFailuresUrl").rsplit('/').next().unwrap_or_default();
            add(&["sqs:SendMessage"], names.arn("sqs", queue));
        }
    }
    if !function.paths.is_empty() {
        let actions = if function.writes_access { TableActions::Write } else { TableActions::GetMany };
        add(actions.iam(), names.table("AccessTableName", ""));
    }
    if function.table.is_some() || !function.paths.is_empty() {
        add_key(&mut add, facts.description.parameter("TableKey"), &["kms:Decrypt"]);
    }
    let (bucket, _) = facts.description.bucket();
    for right in function.bucket {
        let (actions, suffix) = right.iam();
        let resource = match suffix {
            None => format!("arn:{}:s3:::{bucket}", names.partition),
            Some(suffix) => names.file(&suffix.replace('*', "any")),
        };
        add(actions, resource);
    }
    for right in function.bucket {
        add_key(&mut add, facts.description.parameter("BucketKey"), right.key_actions());
    }
    rights
}

fn add_key(add: &mut impl FnMut(&[&'static str], String), key: &str, actions: &[&'static str]) {
    if !key.is_empty() {
        add(actions, key.to_owned());
    }
}

/// Returns whether the statements allow a permission. Conditions are not evaluated: a conditional
/// statement counts as an allow, but not as a deny.
pub(super) fn is_allowed(statements: &[PolicyStatement], (action, resource): &FunctionRight) -> bool {
    // The required resource has `any` in place of the stream's label, which is not looked up. A
    // pattern for one particular stream would not match it, so every pattern for a stream of this
    // table is accepted.
    let resource_fits = |pattern: &String| {
        matches_pattern(pattern, resource)
            || resource
                .strip_suffix("/stream/any")
                .is_some_and(|table| pattern.strip_prefix(table).is_some_and(|rest| rest.starts_with("/stream/")))
    };
    let is_about = |statement: &&PolicyStatement| {
        let actions = &mut statement.actions.iter();
        actions.any(|pattern| matches_pattern(&pattern.to_lowercase(), &action.to_lowercase()))
            && statement.resources.iter().any(resource_fits)
    };
    let about: Vec<_> = statements.iter().filter(is_about).collect();
    about.iter().any(|statement| statement.allows)
        && !about.iter().any(|statement| !statement.allows && !statement.is_conditional)
}

/// Returns whether a policy pattern with `*` and `?` matches a text.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    // After a mismatch, matching resumes behind the last star, which then matches one more
    // character.
    let (mut at, mut to, mut again) = (0, 0, None);
    while to < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                again = Some((at + 1, to));
                at += 1;
            }
            Some(wanted) if *wanted == b'?' || *wanted == text[to] => {
                (at, to) = (at + 1, to + 1);
            }
            _ => {
                let Some((after, from)) = again else { return false };
                again = Some((after, from + 1));
                (at, to) = (after, from + 1);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_a_policy() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abb", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*/index/*", "table/t/index/LSI1", true),
            ("a*b*c", "aXbYbZc", true),
            ("abc", "abcd", false),
        ] {
            assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_denial_counts_more_than_a_right() {
        let statement = |allows, action: &str, resource: &str, is_conditional| PolicyStatement {
            allows,
            actions: vec![action.to_owned()],
            resources: vec![resource.to_owned()],
            is_conditional,
        };
        let right = ("dynamodb:GetItem", "arn:t".to_owned());
        assert!(!is_allowed(&[], &right));
        let allowed = statement(true, "DynamoDB:Get*", "arn:*", false);
        assert!(is_allowed(std::slice::from_ref(&allowed), &right));
        assert!(!is_allowed(std::slice::from_ref(&allowed), &("dynamodb:GetItem", "of another".to_owned())));
        assert!(!is_allowed(&[allowed.clone(), statement(false, "*", "*", false)], &right));
        assert!(is_allowed(&[allowed, statement(false, "*", "*", true)], &right));
        let stream = statement(true, "dynamodb:GetRecords", "arn:t/stream/2030", false);
        assert!(is_allowed(&[stream], &("dynamodb:GetRecords", "arn:t/stream/any".to_owned())));
    }
}
