//! The `Content-Disposition` header of files, as MLflow sends it.

use std::fmt::Write;

use icu_normalizer::DecomposingNormalizerBorrowed;

/// Returns the header that makes a browser save a file under a name (RFC 6266). The name is quoted
/// unless it is a plain token, and encoded unless it is ASCII.
#[must_use]
pub fn attachment_disposition(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let fallback = fallback(name);
    let quoted = if fallback.bytes().all(is_plain) {
        fallback.clone()
    } else {
        format!("\"{}\"", fallback.replace('\\', "\\\\").replace('"', "\\\""))
    };
    let mut disposition = format!("attachment; filename={quoted}");
    if fallback != name {
        disposition.push_str("; filename*=UTF-8''");
        for byte in name.bytes() {
            if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
                disposition.push(char::from(byte));
            } else {
                // Writing to a string does not fail.
                let _ = write!(disposition, "%{byte:02X}");
            }
        }
    }
    disposition
}

/// Returns an ASCII version of a file name, for programs that only support ASCII. Accents are
/// dropped, and ligatures are decomposed (NFKD, like in MLflow). If only an extension is left,
/// `download` is put before it.
fn fallback(name: &str) -> String {
    let decomposed = DecomposingNormalizerBorrowed::new_nfkd().normalize(name);
    let ascii: String = decomposed.chars().filter(|character| (' '..='~').contains(character)).collect();
    let has_lost_its_begin = ascii.is_empty() || ascii.starts_with('.') && !name.starts_with('.');
    if has_lost_its_begin { format!("download{ascii}") } else { ascii }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_encoded() {
        for (name, expected) in [
            ("model.pkl", "attachment; filename=model.pkl"),
            ("a b.txt", "attachment; filename=\"a b.txt\""),
            ("a\"b\\", "attachment; filename=\"a\\\"b\\\\\""),
            ("é.txt", "attachment; filename=e.txt; filename*=UTF-8''%C3%A9.txt"),
            (
                "naïve résumé.pdf",
                "attachment; filename=\"naive resume.pdf\"; filename*=UTF-8''na%C3%AFve%20r%C3%A9sum%C3%A9.pdf",
            ),
            ("ﬁ①.txt", "attachment; filename=fi1.txt; filename*=UTF-8''%EF%AC%81%E2%91%A0.txt"),
            ("日本.txt", "attachment; filename=download.txt; filename*=UTF-8''%E6%97%A5%E6%9C%AC.txt"),
            (".env", "attachment; filename=.env"),
            ("日本", "attachment; filename=download; filename*=UTF-8''%E6%97%A5%E6%9C%AC"),
            ("a\r\nb", "attachment; filename=ab; filename*=UTF-8''a%0D%0Ab"),
        ] {
            assert_eq!(attachment_disposition(name), expected);
        }
    }
}
