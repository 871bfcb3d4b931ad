//! Content types of files, derived from their names.

/// Extensions of files that MLflow shows as text (`get_text_extensions`), and full names of files
/// without an extension.
const TEXT_EXTENSIONS: [&str; 26] = [
    "txt",
    "log",
    "err",
    "cfg",
    "conf",
    "cnf",
    "cf",
    "ini",
    "properties",
    "prop",
    "hocon",
    "toml",
    "yaml",
    "yml",
    "xml",
    "json",
    "js",
    "py",
    "py3",
    "csv",
    "tsv",
    "md",
    "rst",
    "ipynb",
    "MLmodel",
    "MLproject",
];
/// Content types of other files that the user interface shows.
const OTHER_CONTENT_TYPES: [(&str, &str); 10] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("bmp", "image/bmp"),
    ("svg", "image/svg+xml"),
    ("webp", "image/webp"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("pdf", "application/pdf"),
];

/// Returns the content type of a file by its name (`_guess_mime_type`).
pub(crate) fn content_type(name: &str) -> &'static str {
    let extension = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension,
        _ => name,
    };
    if TEXT_EXTENSIONS.contains(&extension) {
        return "text/plain";
    }
    let lower = extension.to_lowercase();
    OTHER_CONTENT_TYPES
        .iter()
        .find(|(known, _)| *known == lower)
        .map_or("application/octet-stream", |(_, content_type)| content_type)
}

/// Returns a content type that is safe for a file that a browser loads directly from the backend.
/// The backend sends no other header that restricts what the browser may do with the file, so types
/// that could run scripts are replaced with plain bytes.
pub(crate) fn inert_type(name: &str) -> &'static str {
    match content_type(name) {
        "text/html" | "image/svg+xml" => "application/octet-stream",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_of_mlflow() {
        for (name, expected) in [
            ("MLmodel", "text/plain"),
            ("a.json", "text/plain"),
            ("a.b.PNG", "image/png"),
            ("model.pkl", "application/octet-stream"),
            ("a.html", "text/html"),
            ("noextension", "application/octet-stream"),
            (".log", "application/octet-stream"),
        ] {
            assert_eq!(content_type(name), expected, "{name}");
        }
        for (name, expected) in [
            ("a.html", "application/octet-stream"),
            ("a.HTM", "application/octet-stream"),
            ("a.svg", "application/octet-stream"),
            ("a.xml", "text/plain"),
            ("a.png", "image/png"),
        ] {
            assert_eq!(inert_type(name), expected, "{name}");
        }
    }
}
