//! Artifact locations: which ones a client may choose, and how paths are appended to them.

use percent_encoding::percent_decode_str;

use crate::limits::{MAX_ARTIFACT_LOCATION_LENGTH, at_most};
use crate::{Error, Result};

/// Schemes whose URIs name a host that the server would have to connect to (`host_policy.py`).
const SCHEMES_WITH_HOST: &[&str] =
    &["ftp", "sftp", "hdfs", "viewfs", "http", "https", "mlflow-artifacts", "r2", "b2", "abfss"];

/// Schemes whose last path segment may contain `;params` (Python's `uses_params`). The empty scheme
/// stands for local paths.
const SCHEMES_WITH_PARAMS: &[&str] =
    &["", "ftp", "hdl", "prospero", "http", "https", "shttp", "rtsp", "rtsps", "sip", "sips", "mms", "sftp", "tel"];

/// The components of a URI that this module uses.
struct UriParts<'a> {
    scheme: String,
    after_scheme: &'a str,
    query: &'a str,
    fragment: &'a str,
}

fn split(uri: &str) -> UriParts<'_> {
    let (before_fragment, fragment) = uri.split_once('#').unwrap_or((uri, ""));
    let (path, query) = before_fragment.split_once('?').unwrap_or((before_fragment, ""));
    match scheme_of(path) {
        Some(scheme) => {
            UriParts { scheme: scheme.to_lowercase(), after_scheme: &path[scheme.len() + 1..], query, fragment }
        }
        None => UriParts { scheme: String::new(), after_scheme: path, query, fragment },
    }
}

fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let mut characters = scheme.chars();
    let well_formed = characters.next()?.is_ascii_alphabetic()
        && characters.all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character));
    well_formed.then_some(scheme)
}

/// Converts the scheme of a location to lower case, which is the form that clients compare.
#[must_use]
pub fn with_lower_scheme(location: &str) -> String {
    match scheme_of(location) {
        Some(scheme) => format!("{}{}", scheme.to_lowercase(), &location[scheme.len()..]),
        None => location.to_owned(),
    }
}

/// Checks the artifact location that a client has chosen for an experiment
/// (`_validate_storage_location_uri`). `root` is the server's own artifact location, whose host is
/// trusted.
pub fn check(location: &str, root: &str) -> Result<()> {
    check_as("artifact_location", location, root)
}

/// Checks whether a location is a URI with a scheme. A drive letter is not a scheme.
#[must_use]
pub fn has_scheme(location: &str) -> bool {
    scheme_of(location).is_some_and(|scheme| scheme.len() > 1)
}

/// Checks the location of the files of archived traces, and returns it without surrounding space
/// (`_validate_trace_archival_location`). `field` is the name of the location in error messages.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if the location is not a URI with a scheme, or has the
/// scheme `mlflow-artifacts`.
pub fn check_archive(field: &str, text: &str) -> Result<String> {
    let location = text.trim();
    if !has_scheme(location) {
        return Err(Error::invalid(format!("Invalid value for '{field}'. Expected a URI string.")));
    }
    if split(location).scheme == "mlflow-artifacts" {
        return Err(Error::invalid(format!(
            "Invalid value for '{field}'. Trace archival location cannot use the proxy-only `mlflow-artifacts:` scheme."
        )));
    }
    Ok(location.to_owned())
}

/// Checks an artifact location like [`check`]. `field` is the name of the location in error
/// messages.
pub fn check_as(field: &str, location: &str, root: &str) -> Result<()> {
    // Locations far beyond the maximum length are rejected early, so that repeated decoding stays
    // cheap.
    if location.len() > 4 * MAX_ARTIFACT_LOCATION_LENGTH {
        return Err(too_long());
    }
    let parts = split(location);
    let last_segment = parts.after_scheme.rsplit('/').next().unwrap_or_default();
    let has_params = SCHEMES_WITH_PARAMS.contains(&parts.scheme.as_str()) && last_segment.contains(';');
    if !parts.fragment.is_empty() || has_params {
        return Err(Error::invalid(format!("'{field}' URL can't include fragments or params.")));
    }
    check_query(parts.query)?;
    check_host(location, root, field)?;
    if location.starts_with("runs:") {
        return Err(Error::invalid(format!("Artifact location cannot be a runs:/ URI. Given: '{location}'")));
    }
    at_most("artifact_location", MAX_ARTIFACT_LOCATION_LENGTH, location).map_err(|_| too_long())
}

/// Checks that a URI does not name a host that the server would have to connect to
/// (`_validate_artifact_uri_scheme`). `field` is the name of the URI in error messages.
pub fn check_host(uri: &str, root: &str, field: &str) -> Result<()> {
    let parts = split(uri);
    if !SCHEMES_WITH_HOST.contains(&parts.scheme.as_str()) {
        return Ok(());
    }
    let names_host = parts.scheme != "mlflow-artifacts" || host(&parts).is_some_and(|host| !host.is_empty());
    if !names_host || same_host(&parts, &split(root)) {
        return Ok(());
    }
    let scheme = parts.scheme;
    Err(Error::invalid(format!(
        "'{field}' cannot use the '{scheme}' scheme: the '{scheme}' scheme addresses a host other than \
         the tracking server's configured artifact storage, so the server would connect to the host named in the URI."
    )))
}

fn too_long() -> Error {
    Error::invalid(format!(
        "Invalid artifact path length. The length of the artifact path cannot be greater than {MAX_ARTIFACT_LOCATION_LENGTH} \
         characters. To configure this limit, please set the MLFLOW_ARTIFACT_LOCATION_MAX_LENGTH environment variable."
    ))
}

fn host<'a>(parts: &UriParts<'a>) -> Option<&'a str> {
    parts.after_scheme.strip_prefix("//").map(|rest| rest.split('/').next().unwrap_or_default())
}

fn same_host(location: &UriParts<'_>, root: &UriParts<'_>) -> bool {
    location.scheme == root.scheme && host(location).is_some() && host(location) == host(root)
}

/// Checks that a query does not contain `..`, even if it is percent-encoded several times.
fn check_query(query: &str) -> Result<()> {
    let mut decoded = query.to_owned();
    loop {
        let once_more = percent_decode_str(&decoded).decode_utf8_lossy().into_owned();
        if decoded.contains("..") || once_more.contains("..") {
            return Err(Error::invalid("Invalid query string"));
        }
        if once_more == decoded {
            return Ok(());
        }
        decoded = once_more;
    }
}

/// Makes a location absolute if it is a relative local path (`resolve_uri_if_local`). The path is
/// resolved against `directory`. Pass `None` if clients must not learn the server's working
/// directory.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` for a relative path if `directory` is `None`, for a `file:`
/// URI that names another host, or if the absolute location is too long.
pub fn absolute(location: &str, directory: Option<&str>) -> Result<String> {
    let parts = split(location);
    let path = match parts.scheme.as_str() {
        "" => location,
        "file" => parts.after_scheme,
        _ => return Ok(location.to_owned()),
    };
    let names_a_machine = path.strip_prefix("//").is_some_and(|rest| !rest.starts_with('/'));
    if parts.scheme == "file" && names_a_machine {
        return Err(Error::invalid(format!("The artifact location '{location}' refers to a file on another host.")));
    }
    // If the location is empty, the server chooses one.
    if path.starts_with('/') || location.is_empty() {
        return Ok(location.to_owned());
    }
    let Some(directory) = directory else {
        return Err(Error::invalid(format!(
            "The artifact location '{location}' is a relative path, which this server cannot resolve. Use an absolute path or \
             a URI."
        )));
    };
    let path = percent_decode_str(path).decode_utf8_lossy();
    let steps = directory.split('/').chain(path.split('/')).filter(|step| !matches!(*step, "" | "."));
    let mut absolute = if parts.scheme.is_empty() { String::new() } else { "file://".to_owned() };
    for step in steps {
        absolute.push('/');
        absolute.push_str(step);
    }
    if !parts.scheme.is_empty() && !parts.query.is_empty() {
        absolute.push('?');
        absolute.push_str(parts.query);
    }
    at_most("artifact_location", MAX_ARTIFACT_LOCATION_LENGTH, &absolute).map_err(|_| too_long())?;
    Ok(absolute)
}

/// Appends a path to a location, before its query (`append_to_uri_path`).
#[must_use]
pub fn append(location: &str, path: &str) -> String {
    let (before_fragment, fragment) = match location.find('#') {
        Some(position) => location.split_at(position),
        None => (location, ""),
    };
    // A local path has no query: `?` is an ordinary character in it.
    let is_local = split(location).scheme.is_empty();
    let (base, query) = match before_fragment.find('?') {
        Some(position) if !is_local => before_fragment.split_at(position),
        _ => (before_fragment, ""),
    };
    if is_local {
        let separator = if location.is_empty() || location.ends_with('/') { "" } else { "/" };
        return format!("{location}{separator}{path}");
    }
    let separator = if base.ends_with('/') || base.ends_with(':') { "" } else { "/" };
    format!("{base}{separator}{path}{query}{fragment}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_at_uris_that_every_program_can_use() {
        for location in ["s3://bucket/x", " file:///r/x "] {
            assert_eq!(check_archive("f", location).unwrap(), location.trim());
        }
        for location in ["", "/r/x", "x", "mlflow-artifacts:/x", "MLFLOW-ARTIFACTS:/x"] {
            assert!(check_archive("f", location).is_err(), "{location}");
        }
    }

    #[test]
    fn schemes_are_compared_in_lower_case() {
        for (location, expected) in
            [("MLFLOW-Artifacts:/A", "mlflow-artifacts:/A"), ("S3://B/A", "s3://B/A"), ("/A:/b", "/A:/b"), ("", "")]
        {
            assert_eq!(with_lower_scheme(location), expected);
        }
    }

    #[test]
    fn paths_are_appended_before_the_query() {
        for (location, expected) in [
            ("s3://bucket/root", "s3://bucket/root/1"),
            ("s3://bucket/root/", "s3://bucket/root/1"),
            ("s3://bucket/root?a=b", "s3://bucket/root/1?a=b"),
            ("s3://bucket", "s3://bucket/1"),
            ("mlflow-artifacts:/", "mlflow-artifacts:/1"),
            ("file:relative", "file:relative/1"),
            ("/local/dir", "/local/dir/1"),
            ("local", "local/1"),
        ] {
            assert_eq!(append(location, "1"), expected);
        }
    }

    #[test]
    fn relative_paths_lead_to_the_working_directory() {
        for (location, expected) in [
            ("relative/path", "/srv/dir/relative/path"),
            ("./a//b/.", "/srv/dir/a/b"),
            ("../up", "/srv/dir/../up"),
            ("a%20b", "/srv/dir/a b"),
            ("file:relative?x=y", "file:///srv/dir/relative?x=y"),
            ("/absolute", "/absolute"),
            ("file:///absolute", "file:///absolute"),
            ("s3://bucket/a", "s3://bucket/a"),
            ("hf:relative", "hf:relative"),
        ] {
            assert_eq!(absolute(location, Some("/srv/dir")).unwrap(), expected);
            assert_eq!(absolute(location, None).is_ok(), location == expected, "{location}");
        }
        assert!(absolute(&"x".repeat(MAX_ARTIFACT_LOCATION_LENGTH), Some("/srv/dir")).is_err());
    }

    #[test]
    fn locations_that_lead_astray_are_refused() {
        for location in [
            "s3://bucket/a#b",
            "/local;x",
            "s3://bucket/a?x=../b",
            "s3://bucket/a?x=%252e%252e/b",
            "http://evil/x",
            "mlflow-artifacts://evil/x",
            "runs:/abc",
        ] {
            assert!(check(location, "s3://bucket").is_err(), "{location}");
        }
        for location in
            ["s3://bucket/a", "s3://other/a;b", "/local", "file:///x", "mlflow-artifacts:/x", "gs://b/x?y=z"]
        {
            assert!(check(location, "s3://bucket").is_ok(), "{location}");
        }
        assert!(check("http://host:1/other", "http://host:1/root").is_ok());
    }
}
