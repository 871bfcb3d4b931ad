//! `--artifacts FROM=TO`: rewrites prefixes of artifact locations.

use std::str::FromStr;

/// A prefix of artifact locations, and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArtifactMapping {
    from: String,
    to: String,
}

impl FromStr for ArtifactMapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((from, to)) if !from.is_empty() && !to.is_empty() => {
                Ok(Self { from: from.trim_end_matches('/').to_owned(), to: to.trim_end_matches('/').to_owned() })
            }
            _ => Err("write FROM=TO, such as s3://old/mlflow=s3://new/mlflow".to_owned()),
        }
    }
}

impl ArtifactMapping {
    /// Returns the location with its prefix replaced, or `None` if it does not have the prefix. A
    /// prefix ends at a slash or at the end of the location.
    pub(crate) fn apply(&self, location: &str) -> Option<String> {
        let rest = location.strip_prefix(&self.from)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", self.to))
    }

    /// Returns the command that copies the files. Returns `None` if one of the locations is only
    /// accessible through a server (`mlflow-artifacts:`).
    pub(crate) fn copy_command(&self) -> Option<String> {
        let Self { from, to } = self;
        if [from, to].iter().any(|location| location.starts_with("mlflow-artifacts:")) {
            return None;
        }
        let is_in_bucket = [from, to].iter().any(|location| location.starts_with("s3://"));
        Some(if is_in_bucket { format!("aws s3 sync {from} {to}") } else { format!("rsync -a {from}/ {to}/") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_at_a_slash() {
        let mapping: ArtifactMapping = "s3://old/=s3://new/x/".parse().unwrap();
        assert_eq!(mapping.apply("s3://old/1/a").as_deref(), Some("s3://new/x/1/a"));
        assert_eq!(mapping.apply("s3://old").as_deref(), Some("s3://new/x"));
        assert_eq!(mapping.apply("s3://older/1"), None);
    }
}
