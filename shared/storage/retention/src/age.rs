//! Minimum time since an entity's deletion, in the format of `mlflow gc --older-than`.

use entities::now_ms;
use mlflow_api::{Error, Result};

/// Units and their durations in ms, in the order in which they are written.
const UNITS: [(char, f64); 4] = [('d', 86_400_000.0), ('h', 3_600_000.0), ('m', 60_000.0), ('s', 1_000.0)];

/// An age, such as `1d2h3m4s` or `1.5d`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionAge {
    text: String,
    ms: i64,
}

impl DeletionAge {
    /// Parses an age.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` if the text is not an age.
    pub fn parse(text: &str) -> Result<Self> {
        let ms = ms_of(text).ok_or_else(|| {
            Error::invalid(format!(
                "Could not parse any time information from '{text}'. Examples of valid strings: '8h', '2d8h5m20s', '2m4s'"
            ))
        })?;
        Ok(Self { text: text.to_owned(), ms })
    }

    /// Returns the age as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the time, in ms since 1970, that is this age before the present. Entities that were
    /// deleted before that time are old enough.
    #[must_use]
    pub fn before(&self) -> i64 {
        now_ms().saturating_sub(self.ms)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a number that is too large saturates, as with `as`")]
fn ms_of(text: &str) -> Option<i64> {
    let (mut rest, mut ms) = (text, 0.0);
    for (unit, ms_of_unit) in UNITS {
        let end = rest.find(|other: char| !other.is_ascii_digit() && other != '.').unwrap_or(rest.len());
        let (digits, behind) = rest.split_at(end);
        if let Some(behind) = behind.strip_prefix(unit).filter(|_| !digits.is_empty()) {
            ms += digits.parse::<f64>().ok()? * ms_of_unit;
            rest = behind;
        }
    }
    // An empty age is rejected, because it is most likely an oversight.
    (rest.is_empty() && !text.is_empty()).then_some(ms as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_as_mlflow_reads_them() {
        for (text, ms) in [
            ("1d2h3m4s", 93_784_000),
            ("1.5d", 129_600_000),
            ("8h", 28_800_000),
            ("2m4s", 124_000),
            ("0s", 0),
            (".5s", 500),
            ("1d4s", 86_404_000),
        ] {
            assert_eq!(DeletionAge::parse(text).unwrap().ms, ms, "{text}");
        }
        for text in ["", "d", "1", "30 d", "1s2m", "1.2.3d", "-1d", "1w", "1d1d"] {
            let message = DeletionAge::parse(text).unwrap_err().message;
            assert!(message.starts_with(&format!("Could not parse any time information from '{text}'.")), "{message}");
        }
    }

    #[test]
    fn nothing_is_older_than_for_ever() {
        assert!(DeletionAge::parse("99999999999999999999d").unwrap().before() < 0);
    }
}
