//! Checks of the source of a model version, which is a URI. The source must not refer to another
//! location than it appears to refer to. A source that is a path on the server's machine, or that
//! is accessed through the server, must belong to the run or the logged model that the version
//! names.
//!
//! The rules are MLflow's (`_validate_source_run`, `_validate_source_model`). Any other location
//! may be recorded, because clients load the model with their own credentials. The server itself
//! sends only files from its own bucket, so a source in the bucket has to belong to the run or the
//! logged model that the version names (`docs/adr/0018-locations.md`).

use mlflow_api::limits::normalized_path;
use mlflow_api::{Error, Result};
use percent_encoding::percent_decode_str;

/// Maximum number of layers of percent-encoding that are decoded (`_decode` in MLflow's `uri.py`).
const MAX_LAYERS: usize = 10;
/// Maximum length of a source, in characters.
const MAX_LENGTH: usize = 4_096;

/// The components of a source, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceUri<'a> {
    pub(crate) uri: &'a str,
    /// The scheme as written, in upper or lower case. Empty for a path.
    pub(crate) scheme: &'a str,
    /// The host, or any other text between `//` and the path.
    pub(crate) authority: &'a str,
    pub(crate) path: &'a str,
    query: &'a str,
}

/// The target of a `models:` URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelUri<'a> {
    /// A logged model, by id.
    Logged(&'a str),
    /// A version, by the name of the model and the number.
    Version(&'a str, &'a str),
    /// The version with the highest number.
    Latest(&'a str),
    /// The version with the highest number in a stage.
    Stage(&'a str, &'a str),
    /// The version with an alias.
    Alias(&'a str, &'a str),
}

impl<'a> SourceUri<'a> {
    pub(crate) fn parse(uri: &'a str) -> Self {
        let (scheme, rest) = match uri.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
            _ => ("", uri),
        };
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        Self { uri, scheme, authority, path, query }
    }

    /// Rejects sources that exceed the maximum length.
    pub(crate) fn check_length(&self) -> Result<()> {
        mlflow_api::limits::at_most("Model version source", MAX_LENGTH, self.uri)
    }

    pub(crate) fn has_scheme(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Checks whether the source is a path on the server's machine (`is_local_uri`).
    pub(crate) fn is_local(&self) -> bool {
        self.scheme.is_empty() || self.has_scheme("file")
    }

    /// Checks whether the source refers to a location through MLflow's artifact proxy
    /// (`_is_mlflow_artifact_source`).
    pub(crate) fn is_proxied(&self) -> bool {
        const ROUTE: [&str; 4] = ["api", "2.0", "mlflow-artifacts", "artifacts"];
        let is_http = self.has_scheme("http") || self.has_scheme("https");
        self.has_scheme("mlflow-artifacts")
            || (is_http
                && parts(self.path).is_some_and(|parts| parts.windows(ROUTE.len()).any(|window| window == ROUTE)))
    }

    /// Rejects URIs that are not local and that could refer to another target than they appear to
    /// refer to (`_validate_non_local_source_contains_relative_paths`). Such URIs contain `.` or
    /// `..`, backslashes, control characters or fragments, in any layer of encoding.
    pub(crate) fn check_plain(&self) -> Result<()> {
        let (Some(decoded), Some(query)) = (decoded(&self.uri.replace('+', " ")), decoded(self.query)) else {
            return Err(self.relative_part_error());
        };
        let path = decoded_path(&decoded);
        let is_plain = path.starts_with('/')
            && !path.trim_end_matches('/').is_empty()
            && !has_relative_part(&decoded)
            && !decoded.contains(['\\', '#'])
            && !decoded.contains(char::is_control)
            && !query.contains("..");
        if is_plain { Ok(()) } else { Err(self.relative_part_error()) }
    }

    fn relative_part_error(&self) -> Error {
        Error::invalid(format!(
            "Invalid model version source: '{}'. If supplying a source as an http, https, local file path, ftp, objectstore, \
             or mlflow-artifacts uri, an absolute path must be provided without relative path references present. Please \
             provide an absolute path.",
            self.uri
        ))
    }

    /// Checks whether the source is a location or is below it, comparing the decoded components of
    /// the paths (`_is_uri_within_root`). For object stores, the undecoded path also has to start
    /// with the location's path, because clients read objects by the undecoded path.
    pub(crate) fn is_below(&self, location: &str) -> bool {
        let root = SourceUri::parse(location);
        let (Some(root_parts), Some(own_parts)) = (root.target_parts(), self.target_parts()) else { return false };
        let same_host = if self.is_local() {
            root.is_local() && self.is_absolute()
        } else {
            // The authority is compared case-sensitively, because names of buckets are
            // case-sensitive.
            self.scheme.eq_ignore_ascii_case(root.scheme) && self.authority == root.authority
        };
        let has_root = !root_parts.is_empty() || !root.authority.is_empty();
        let reads_as_written = !self.is_local() && !self.is_proxied();
        same_host
            && has_root
            && own_parts.starts_with(&root_parts)
            && (!reads_as_written || begins_with_path(self.path, root.path))
            && self.stays_in_location()
    }

    /// Checks whether the source is an absolute path on this machine. Python interprets the host of
    /// a `file:` URI as another machine.
    fn is_absolute(&self) -> bool {
        let path = if self.scheme.is_empty() { self.uri } else { self.path };
        self.authority.is_empty() && path.starts_with('/') && !path.starts_with("//")
    }

    /// Checks that no component of the path, in any layer of encoding, refers to a location
    /// outside. Python also decodes paths without a scheme, and drops line feeds and tabs from all
    /// paths.
    fn stays_in_location(&self) -> bool {
        let path = if self.scheme.is_empty() { self.uri } else { self.path };
        decoded(path)
            .is_some_and(|path| !has_relative_part(&path) && !path.contains('\\') && !path.contains(char::is_control))
    }

    /// Returns the components of the path. In a path without a scheme, `%`, `?` and `#` have no
    /// special meaning.
    fn target_parts(&self) -> Option<Vec<String>> {
        if self.scheme.is_empty() {
            let whole = self.uri.split('/').filter(|part| !part.is_empty());
            return Some(whole.map(str::to_owned).collect());
        }
        parts(self.path)
    }

    /// Returns a source on the server's machine as a normalized path. The path is decoded once, as
    /// in Python's `url2pathname`.
    pub(crate) fn local_path(&self) -> String {
        let path = if self.scheme.is_empty() { self.uri } else { self.path };
        normalized_path(&percent_decode_str(path).decode_utf8_lossy())
    }

    /// Returns the error about a local path that belongs to neither a run nor a logged model. `id`
    /// is the name of the request parameter that could name its owner.
    pub(crate) fn local_path_error(path: &str, id: &str) -> Error {
        Error::invalid(format!(
            "Invalid model version source: '{path}'. To use a local path as a model version source, the {id} request parameter has \
             to be specified and the local path has to be contained within the artifact directory of the run specified by \
             the {id}."
        ))
    }

    /// Returns the error about a source that does not belong to the entity in the parameter `id`
    /// (`_raise_invalid_model_version_source`).
    pub(crate) fn owner_error(&self, id: &str) -> Error {
        Error::invalid(format!(
            "Invalid model version source: '{}'. The {id} request parameter must identify the resource that contains the source.",
            self.uri
        ))
    }

    /// Returns an error about the source for any other reason.
    pub(crate) fn source_error(&self, reason: &str) -> Error {
        Error::invalid(format!("Invalid model version source: '{}'. {reason}", self.uri))
    }

    /// Parses a `models:` URI (`_parse_model_uri`).
    pub(crate) fn model_uri(&self) -> Option<ModelUri<'a>> {
        // In `models:` URIs, MLflow does not treat `#` as the start of a fragment.
        let (_, rest) = self.uri.split_once(':')?;
        let path = rest.split_once('?').map_or(rest, |(path, _)| path);
        let path = path.strip_prefix('/')?.trim_start_matches('/');
        let (name, suffix) = match path.split_once('/') {
            Some((name, suffix)) => (name, Some(suffix)),
            None => (path, None),
        };
        let is_blank = |text: &str| text.trim().is_empty();
        if is_blank(name) || suffix.is_some_and(|suffix| suffix.contains('/') || is_blank(suffix)) {
            return None;
        }
        Some(match suffix {
            Some(number) if number.chars().all(|character| character.is_ascii_digit()) => {
                ModelUri::Version(name, number)
            }
            Some(latest) if latest.eq_ignore_ascii_case("latest") => ModelUri::Latest(name),
            Some(stage) => ModelUri::Stage(name, stage),
            None => match name.rsplit_once('@') {
                Some((_, alias)) if is_blank(alias) => return None,
                Some((name, alias)) => ModelUri::Alias(name, alias),
                None => ModelUri::Logged(name),
            },
        })
    }

    /// Returns the run that a `runs:` URI refers to (`parse_runs_uri`).
    pub(crate) fn run(&self) -> Option<&'a str> {
        let run = self.path.strip_prefix('/')?.split('/').next()?;
        (!run.is_empty()).then_some(run)
    }
}

fn is_scheme(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character))
}

/// Returns the path of a decoded URI.
fn decoded_path(decoded: &str) -> &str {
    SourceUri::parse(decoded).path
}

fn has_relative_part(text: &str) -> bool {
    text.split(['/', '\\', '?', '#', ';']).any(|part| matches!(part, "." | ".."))
}

/// Returns the components of a path, each of them decoded through all layers of percent-encoding.
/// Returns `None` if there are too many layers.
fn parts(path: &str) -> Option<Vec<String>> {
    path.split('/').filter(|part| !part.is_empty()).map(decoded).collect()
}

/// Checks whether a path is equal to another path or below it, without decoding either.
fn begins_with_path(path: &str, root: &str) -> bool {
    path.strip_prefix(root.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || (rest.starts_with('/') && !rest.starts_with("//")))
}

/// Decodes a text through all layers of percent-encoding. Returns `None` if there are more layers
/// than any legitimate text has.
fn decoded(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    for _ in 0..MAX_LAYERS {
        let once_more = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if once_more == text {
            return Some(text);
        }
        text = once_more;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sources_that_lead_astray_are_refused() {
        for uri in [
            "s3://bucket/root/../x",
            "s3://bucket/root/%2e%2e/x",
            "s3://bucket/root/%252e%252e/x",
            "s3://bucket/root/..%2fx",
            "s3://bucket/root/%252E%252E%252Fx",
            "s3://bucket/root/..\\x",
            "s3://bucket/root/%5c..%5cx",
            "s3://bucket/root/./x",
            "s3://bucket/root/x%00",
            "s3://bucket/root/x#/../y",
            "s3://bucket/root/x%23y",
            "s3://bucket/root/x?a=..%2f",
            "s3://bucket/root/..?x",
            "s3://bucket/root/..;x",
            "s3://bucket",
            "s3://bucket/",
            "s3:relative",
            "mlflow-artifacts:/..",
            "runs:/",
        ] {
            assert!(SourceUri::parse(uri).check_plain().is_err(), "{uri}");
        }
        for uri in [
            "s3://bucket/root/x",
            "s3://bucket/a%20b/x",
            "s3://b/a..b/x",
            "runs:/abc/model",
            "models:/m/1",
            "gs://b/x?y=z",
        ] {
            assert!(SourceUri::parse(uri).check_plain().is_ok(), "{uri}");
        }
    }

    #[test]
    fn below_a_root_is_below_it_part_by_part() {
        for (uri, root, expected) in [
            ("s3://bucket/root/x", "s3://bucket/root", true),
            ("S3://bucket/root/x", "s3://bucket/root/", true),
            ("s3://BUCKET/root/x", "s3://bucket/root", false),
            ("s3://bucket/root/x", "s3://Bucket/root", false),
            ("s3://bucket/root", "s3://bucket/root", true),
            ("s3://bucket/rooted/x", "s3://bucket/root", false),
            ("s3://bucket/r%6fot/x", "s3://bucket/root", false),
            ("s3://bucket//root/x", "s3://bucket/root", false),
            ("s3://bucket/root//x", "s3://bucket/root", false),
            ("s3://bucket/root/a%20b", "s3://bucket/root", true),
            ("s3://other/root/x", "s3://bucket/root", false),
            ("s3://bucket/x", "s3://bucket", true),
            ("s3://bucket/x", "s3://bucket/", true),
            ("s3://bucket/root/%2e%2e/x", "s3://bucket/root", false),
            ("/data/artifacts/x", "/data/artifacts", true),
            ("file:///data/artifacts/x", "/data/artifacts", true),
            ("/data/artifacts/../x", "/data/artifacts", false),
            ("file:///data/artifacts/%2e%2e/x", "/data/artifacts", false),
            ("/data/artifacts/x", "s3://data/artifacts", false),
            ("/data/artifacts/%2e%2e/%252e%252e/x", "/data/artifacts", false),
            ("/data/artifacts/.\t./x", "/data/artifacts", false),
            ("file:///data/artifacts/.\n./x", "/data/artifacts", false),
            ("data/artifacts/x", "/data/artifacts", false),
            ("file:data/artifacts/x", "/data/artifacts", false),
            ("file://host/data/artifacts/x", "/data/artifacts", false),
            ("//host/data/artifacts/x", "/host/data/artifacts", false),
            ("/data/artifacts/a%20b", "/data/artifacts", true),
            ("/data", "", false),
            ("mlflow-artifacts:/0/run/artifacts/m", "mlflow-artifacts:/0/run/artifacts", true),
        ] {
            assert_eq!(SourceUri::parse(uri).is_below(root), expected, "{uri} {root}");
        }
    }

    #[test]
    fn model_uris_are_read_as_in_mlflow() {
        for (uri, expected) in [
            ("models:/m/3", Some(ModelUri::Version("m", "3"))),
            ("models:/m/Latest", Some(ModelUri::Latest("m"))),
            ("models:/m/Production", Some(ModelUri::Stage("m", "Production"))),
            ("models:/m@champion", Some(ModelUri::Alias("m", "champion"))),
            ("models:/a@b@c", Some(ModelUri::Alias("a@b", "c"))),
            ("models:/m-123", Some(ModelUri::Logged("m-123"))),
            ("models:/", None),
            ("models:/m/", None),
            ("models:/m/1/2", None),
            ("models:/m@", None),
            ("models:m/1", None),
        ] {
            assert_eq!(SourceUri::parse(uri).model_uri(), expected, "{uri}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_passes_leads_out_of_the_root(tail in "([a-z.%25eEfF/\\\\#?;]|%2e|%252e|%2f|\\.\\.){0,12}") {
            let uri = format!("s3://bucket/root/{tail}");
            let source = SourceUri::parse(&uri);
            if source.check_plain().is_ok() && source.is_below("s3://bucket/root") {
                let mut layer = uri.clone();
                for _ in 0..6 {
                    let path = layer.split(['/', '\\']).collect::<Vec<_>>();
                    prop_assert!(!path.contains(&"..") && !path.contains(&"."), "{}", layer);
                    layer = percent_decode_str(&layer).decode_utf8_lossy().into_owned();
                }
            }
        }
    }
}
