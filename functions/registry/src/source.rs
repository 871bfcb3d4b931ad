//! Checks the source of a model version: a URI that leads nowhere else than it seems to. A path of
//! the server's machine, or one through the server, must belong to the run or to the logged model.
//!
//! The rules are MLflow's (`_validate_source_run`, `_validate_source_model`). Any other place may
//! be recorded: clients load the model with rights of their own. The server itself sends files of
//! its own bucket. So these have to belong to the run or the logged model that the version names
//! (`docs/adr/0018-locations.md`).

use mlflow_api::limits::normalized_path;
use mlflow_api::{Error, Result};
use percent_encoding::percent_decode_str;

/// Layers of encoding that are taken off (`_decode` in MLflow's `uri.py`).
const LAYERS: usize = 10;
/// Characters in a source.
const LONGEST: usize = 4_096;

/// A source in its parts, as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source<'a> {
    pub(crate) uri: &'a str,
    /// In any case; empty for a path.
    pub(crate) scheme: &'a str,
    /// The host, or the text in its place.
    pub(crate) authority: &'a str,
    pub(crate) path: &'a str,
    query: &'a str,
}

/// The target of an alias URI or a version URI of a registered model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelUri<'a> {
    /// A logged model, by its id.
    Logged(&'a str),
    /// A version by its number.
    Version(&'a str, &'a str),
    /// The greatest version.
    Latest(&'a str),
    /// The greatest version of a stage.
    Stage(&'a str, &'a str),
    /// The version of an alias.
    Alias(&'a str, &'a str),
}

impl<'a> Source<'a> {
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

    /// Refuses a source that is longer than any that leads somewhere.
    pub(crate) fn check_length(&self) -> Result<()> {
        mlflow_api::limits::at_most("Model version source", LONGEST, self.uri)
    }

    pub(crate) fn has_scheme(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Whether it is a path on the server's machine (`is_local_uri`).
    pub(crate) fn is_local(&self) -> bool {
        self.scheme.is_empty() || self.has_scheme("file")
    }

    /// Whether it leads through MLflow's own artifact proxy (`_is_mlflow_artifact_source`).
    pub(crate) fn is_proxied(&self) -> bool {
        const ROUTE: [&str; 4] = ["api", "2.0", "mlflow-artifacts", "artifacts"];
        let is_http = self.has_scheme("http") || self.has_scheme("https");
        self.has_scheme("mlflow-artifacts")
            || (is_http
                && parts(self.path).is_some_and(|parts| parts.windows(ROUTE.len()).any(|window| window == ROUTE)))
    }

    /// Refuses a URI that is not local and does not name its target plainly, in however many layers of encoding
    /// (`_validate_non_local_source_contains_relative_paths`): no `.` and `..`, no backslash, no control character, no fragment.
    pub(crate) fn check_plain(&self) -> Result<()> {
        let (Some(decoded), Some(query)) = (decoded(&self.uri.replace('+', " ")), decoded(self.query)) else {
            return Err(self.not_plain());
        };
        let path = decoded_path(&decoded);
        let is_plain = path.starts_with('/')
            && !path.trim_end_matches('/').is_empty()
            && !has_relative_part(&decoded)
            && !decoded.contains(['\\', '#'])
            && !decoded.contains(char::is_control)
            && !query.contains("..");
        if is_plain { Ok(()) } else { Err(self.not_plain()) }
    }

    fn not_plain(&self) -> Error {
        Error::invalid(format!(
            "Invalid model version source: '{}'. If supplying a source as an http, https, local file path, ftp, objectstore, \
             or mlflow-artifacts uri, an absolute path must be provided without relative path references present. Please \
             provide an absolute path.",
            self.uri
        ))
    }

    /// Whether it is below a location, or is it: part by part, decoded (`_is_uri_within_root`). Clients read object stores by the path
    /// as it is written, so there that has to begin with the location's, too.
    pub(crate) fn is_below(&self, location: &str) -> bool {
        let root = Source::parse(location);
        let (Some(root_parts), Some(own_parts)) = (root.target_parts(), self.target_parts()) else { return false };
        let same_host = if self.is_local() {
            root.is_local() && self.is_absolute()
        } else {
            // The names of buckets that differ in case are two buckets.
            self.scheme.eq_ignore_ascii_case(root.scheme) && self.authority == root.authority
        };
        let has_root = !root_parts.is_empty() || !root.authority.is_empty();
        let reads_as_written = !self.is_local() && !self.is_proxied();
        same_host
            && has_root
            && own_parts.starts_with(&root_parts)
            && (!reads_as_written || begins_with_path(self.path, root.path))
            && self.leads_nowhere_else()
    }

    /// Whether it is a path of this machine from its root on. Python takes the host of a `file:`
    /// URI for another machine.
    fn is_absolute(&self) -> bool {
        let path = if self.scheme.is_empty() { self.uri } else { self.path };
        self.authority.is_empty() && path.starts_with('/') && !path.starts_with("//")
    }

    /// Whether no part of it, in no layer of encoding, is a step to elsewhere. Python decodes a path without a scheme, too, and
    /// drops line feeds and tabs from any.
    fn leads_nowhere_else(&self) -> bool {
        let path = if self.scheme.is_empty() { self.uri } else { self.path };
        decoded(path)
            .is_some_and(|path| !has_relative_part(&path) && !path.contains('\\') && !path.contains(char::is_control))
    }

    /// The parts of the path. In a path without a scheme, a `%` is a character like any other, and so are `?` and `#`.
    fn target_parts(&self) -> Option<Vec<String>> {
        if self.scheme.is_empty() {
            let whole = self.uri.split('/').filter(|part| !part.is_empty());
            return Some(whole.map(str::to_owned).collect());
        }
        parts(self.path)
    }

    /// A local source as a path, without detours: decoded once, as Python's `url2pathname` does.
    pub(crate) fn local_path(&self) -> String {
        let path = if self.scheme.is_empty() { self.uri } else { self.path };
        normalized_path(&percent_decode_str(path).decode_utf8_lossy())
    }

    /// Refuses a local path: it belongs to neither run nor logged model; `id` is the parameter that would name its owner.
    pub(crate) fn local_refused(path: &str, id: &str) -> Error {
        Error::invalid(format!(
            "Invalid model version source: '{path}'. To use a local path as a model version source, the {id} request parameter has \
             to be specified and the local path has to be contained within the artifact directory of the run specified by \
             the {id}."
        ))
    }

    /// Refuses a source that does not belong to the entity in the parameter `id`
    /// (`_raise_invalid_model_version_source`).
    pub(crate) fn owner_refused(&self, id: &str) -> Error {
        Error::invalid(format!(
            "Invalid model version source: '{}'. The {id} request parameter must identify the resource that contains the source.",
            self.uri
        ))
    }

    /// Any other refusal of the source.
    pub(crate) fn refused(&self, reason: &str) -> Error {
        Error::invalid(format!("Invalid model version source: '{}'. {reason}", self.uri))
    }

    /// Reads a `models:` URI (`_parse_model_uri`).
    pub(crate) fn model_uri(&self) -> Option<ModelUri<'a>> {
        // There, MLflow takes `#` for a character like any other.
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

    /// The run a `runs:` URI names (`parse_runs_uri`).
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

/// The path of a URI that was decoded.
fn decoded_path(decoded: &str) -> &str {
    Source::parse(decoded).path
}

fn has_relative_part(text: &str) -> bool {
    text.split(['/', '\\', '?', '#', ';']).any(|part| matches!(part, "." | ".."))
}

/// The parts of a path, each decoded through all layers; `None` if there are too many.
fn parts(path: &str) -> Option<Vec<String>> {
    path.split('/').filter(|part| !part.is_empty()).map(decoded).collect()
}

/// Whether a path as it is written is below another, or is it.
fn begins_with_path(path: &str, root: &str) -> bool {
    path.strip_prefix(root.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || (rest.starts_with('/') && !rest.starts_with("//")))
}

/// A text decoded through all layers; `None` if there are more than anybody needs.
fn decoded(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    for _ in 0..LAYERS {
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
            assert!(Source::parse(uri).check_plain().is_err(), "{uri}");
        }
        for uri in [
            "s3://bucket/root/x",
            "s3://bucket/a%20b/x",
            "s3://b/a..b/x",
            "runs:/abc/model",
            "models:/m/1",
            "gs://b/x?y=z",
        ] {
            assert!(Source::parse(uri).check_plain().is_ok(), "{uri}");
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
            assert_eq!(Source::parse(uri).is_below(root), expected, "{uri} {root}");
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
            assert_eq!(Source::parse(uri).model_uri(), expected, "{uri}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_passes_leads_out_of_the_root(tail in "([a-z.%25eEfF/\\\\#?;]|%2e|%252e|%2f|\\.\\.){0,12}") {
            let uri = format!("s3://bucket/root/{tail}");
            let source = Source::parse(&uri);
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
