//! YAML snippets that several sections of the template share.

use std::fmt::Write;

/// Maximum width of a comment in the template, without its indentation.
const COMMENT_WIDTH: usize = 100;

/// Expressions for the bucket's name, and for its path with the prefix of the artifacts. The
/// separators that are appended to the root keep `!Select` valid for an empty root: CloudFormation
/// evaluates both branches of an `!If`.
pub(super) const BUCKET: &str =
    "!If [HasOwnBucket, !Ref ArtifactBucket, !Select [2, !Split [\"/\", !Sub \"${ArtifactRoot}///\"]]]";
pub(super) const PATH: &str =
    "!If [HasOwnBucket, !Ref ArtifactBucket, !Select [1, !Split [\"s3://\", !Sub \"${ArtifactRoot}s3://\"]]]";
pub(super) const DESTINATION: &str = "!If [HasOwnBucket, !Sub \"s3://${ArtifactBucket}\", !Ref ArtifactRoot]";

/// Expressions for the names of the tables: either the stack creates them, or a parameter names an
/// existing one.
pub(super) const TABLE: &str = "!If [HasOwnTable, !Ref Table, !Ref ExistingTable]";
pub(super) const ACCESS_TABLE: &str = "!If [HasOwnAccessTable, !Ref AccessTable, !Ref ExistingAccessTable]";
pub(super) const STREAM: &str = "!If [HasOwnTable, !GetAtt Table.StreamArn, !Sub \"arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/\
                      ${ExistingTable}/stream/${ExistingTableStream}\"]";

/// Returns the ARN of a table, or of a resource below it.
pub(super) fn table_arn(name: &str, below: &str) -> String {
    format!(
        "!Sub [\"arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/${{Name}}{below}\", {{ Name: {name} }}]"
    )
}

/// Returns a wrapped comment, with each line indented by `indent` spaces.
pub(super) fn comment(indent: usize, text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + word.len() < COMMENT_WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().fold(String::new(), |text, line| format!("{text}{:indent$}# {line}\n", ""))
}

/// Returns a statement of a role's policy that allows actions on resources.
pub(super) fn statement(why: &str, actions: &[&str], resources: &[String]) -> String {
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
