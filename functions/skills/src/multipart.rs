//! A parser of forms (`multipart/form-data`), in which clients upload the content of skills.

use mlflow_api::{Error, ErrorCode, Result};

/// Maximum length of a boundary (RFC 2046, section 5.1.1).
const MAX_BOUNDARY_LENGTH: usize = 70;
/// Maximum number of parts that are files.
const MAX_FILES: usize = 2;
/// Maximum number of other parts.
const MAX_FIELDS: usize = 1;
/// Maximum size of a part that is not a file, in bytes.
const MAX_FIELD_BYTES: usize = 1 << 20;

/// A part of a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// Name of the field.
    pub(crate) name: String,
    /// Whether the part is a file, which means that it has a file name.
    pub(crate) is_file: bool,
    /// Content.
    pub(crate) content: &'a [u8],
}

/// Reads the parts of a form. `content_type` contains the boundary that separates them. As in MLflow, a
/// part without an end is ignored.
///
/// # Errors
/// Fails with `BAD_REQUEST` if the form is malformed.
pub(crate) fn parts<'a>(content_type: &str, body: &'a [u8]) -> Result<Vec<Part<'a>>> {
    let boundary = parameter(content_type, "boundary").filter(|boundary| !boundary.is_empty());
    let boundary = boundary.ok_or_else(|| Error::new(ErrorCode::BadRequest, "Missing boundary in multipart."))?;
    if boundary.len() > MAX_BOUNDARY_LENGTH {
        return Err(malformed());
    }
    let delimiter = format!("--{boundary}");
    if body.is_empty() {
        return Ok(Vec::new());
    }
    // A line break precedes each boundary except for the first one, which may follow a preamble.
    let start = find(body, delimiter.as_bytes()).ok_or_else(malformed)?;
    let mut rest = body.get(start + delimiter.len()..).unwrap_or_default();
    let delimiter = format!("\r\n{delimiter}");
    let mut parts = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        let after = rest.trim_ascii_start_spaces().strip_prefix(b"\r\n").ok_or_else(malformed)?;
        // A part without headers begins with an empty line.
        let (headers, content_start) = if after.starts_with(b"\r\n") {
            (&b""[..], 2)
        } else {
            let Some(end) = find(after, b"\r\n\r\n") else { return Ok(parts) };
            (after.get(..end).unwrap_or_default(), end + 4)
        };
        let content = after.get(content_start..).unwrap_or_default();
        let Some(end) = find(content, delimiter.as_bytes()) else { return Ok(parts) };
        let (content, next) = content.split_at_checked(end).ok_or_else(malformed)?;
        rest = next.get(delimiter.len()..).unwrap_or_default();
        let part = part(headers, content)?;
        if !part.is_file && part.content.len() > MAX_FIELD_BYTES {
            return Err(Error::new(ErrorCode::BadRequest, "Part exceeded maximum size of 1024KB."));
        }
        parts.push(part);
        for (is_file, kind, most) in [(true, "files", MAX_FILES), (false, "fields", MAX_FIELDS)] {
            if parts.iter().filter(|part| part.is_file == is_file).count() > most {
                let message = format!("Too many {kind}. Maximum number of {kind} is {most}.");
                return Err(Error::new(ErrorCode::BadRequest, message));
            }
        }
    }
}

fn part<'a>(headers: &[u8], content: &'a [u8]) -> Result<Part<'a>> {
    let headers = String::from_utf8_lossy(headers);
    let disposition = headers.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    });
    let disposition = disposition.ok_or_else(malformed)?;
    let name = parameter(disposition, "name").ok_or_else(malformed)?;
    let is_file = parameter(disposition, "filename").is_some() || parameter(disposition, "filename*").is_some();
    Ok(Part { name, is_file, content })
}

/// Returns the value of a parameter in a header's value, without quotes.
fn parameter(header: &str, name: &str) -> Option<String> {
    let mut rest = header.split_once(';')?.1;
    loop {
        let (key, after) = rest.split_once('=')?;
        let (value, next) = if let Some(quoted) = after.trim_start().strip_prefix('"') {
            let (value, next) = unquoted(quoted)?;
            (value, next.split_once(';').map_or("", |(_, next)| next))
        } else {
            let (value, next) = after.split_once(';').unwrap_or((after, ""));
            (value.trim().to_owned(), next)
        };
        if key.trim().trim_start_matches(';').trim().eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = next;
    }
}

/// Reads a quoted text, whose opening quote has been removed. Returns its value without escapes,
/// and the rest after the closing quote. Returns `None` if there is no closing quote.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let (mut value, mut characters) = (String::new(), quoted.char_indices());
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((value, quoted.get(place + 1..).unwrap_or_default())),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

trait TrimSpaces {
    /// Returns the text without the spaces and tabs at its beginning.
    fn trim_ascii_start_spaces(&self) -> &Self;
}

impl TrimSpaces for [u8] {
    fn trim_ascii_start_spaces(&self) -> &Self {
        let start = self.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(self.len());
        self.get(start..).unwrap_or_default()
    }
}

/// Returns the position of the first occurrence of a pattern.
fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    let first = *pattern.first()?;
    let mut start = 0;
    loop {
        start += text.get(start..)?.iter().position(|byte| *byte == first)?;
        if text.get(start..)?.starts_with(pattern) {
            return Some(start);
        }
        start += 1;
    }
}

fn malformed() -> Error {
    Error::new(ErrorCode::BadRequest, "Invalid multipart data.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(content_type: &str, body: &str) -> Result<Vec<(String, bool, String)>> {
        let parts = parts(content_type, body.as_bytes())?;
        let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
        Ok(parts.into_iter().map(|part| (part.name, part.is_file, text(part.content))).collect())
    }

    #[test]
    fn parts_are_separated_by_the_boundary() {
        let body = "--x-y\r\nContent-Disposition: form-data; name=\"metadata\"\r\nContent-Type: application/json\r\n\r\n{}\r\n\
                    --x-y\r\ncontent-disposition: form-data; filename=\"a \\\"; b.gz\"; name=\"content\"\r\n\r\n--x\r\n-y\r\n--x-y--\r\n";
        let expected = [("metadata", false, "{}"), ("content", true, "--x\r\n-y")];
        let expected: Vec<_> =
            expected.map(|(name, is_file, content)| (name.to_owned(), is_file, content.to_owned())).into();
        for content_type in
            ["multipart/form-data; boundary=x-y", "multipart/form-data; charset=utf-8; Boundary=\"x-y\""]
        {
            assert_eq!(names(content_type, body).unwrap(), expected);
        }
        for body in ["", "--x--", "--x\r\n\r\n", "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--"] {
            assert_eq!(names("multipart/form-data; boundary=x", body).unwrap(), [], "{body}");
        }
        for (content_type, body) in [
            ("multipart/form-data", body),
            ("multipart/form-data; boundary=", body),
            ("multipart/form-data; boundary=z", body),
            ("multipart/form-data; boundary=x", "--x\r\n\r\na\r\n--x--"),
        ] {
            assert!(names(content_type, body).is_err(), "{content_type} {body}");
        }
    }
}
