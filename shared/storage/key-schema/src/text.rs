//! Texts in keys.

use std::fmt::Write;

use model::{UserName, Workspace};

use crate::segment::{Segment, sha256_128};

/// A text that a user chose.
pub trait TextSegment: Segment {
    /// Length, in bytes, up to which an encoded text is never truncated. Longer texts may be
    /// truncated, and are then not sorted like the texts themselves.
    const UNCUT: usize;

    /// Returns the encoded prefix of all texts that begin with this one, truncated or not, for
    /// queries by prefix.
    fn beginning(&self) -> String;
}

/// Marks a truncated text. The mark sorts after every escaped character, and no complete text
/// contains it.
const TRUNCATION_MARK: &str = "$~";

/// Defines a type of texts that users choose. The number is the maximum length of an encoded text
/// in bytes. It leaves room for the other segments of a sort key, which can hold 1,024 bytes.
macro_rules! text_segment {
    ($(#[doc = $doc:literal])+ $name:ident, $longest:literal) => {
        $(#[doc = $doc])+
        ///
        /// Bytes up to `$` are encoded as `$` and two hexadecimal digits, so that the encoded text
        /// contains no `#`, and `a` sorts before `a!` even if `#` follows both. A text that is too
        /// long for the key is truncated and ends in a hash of the whole text
        /// ([`sha256_128`](crate::sha256_128)). The item then holds the whole text in an attribute,
        /// and a reader that looks up such a text has to compare the attribute.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(pub String);

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl TextSegment for $name {
            const UNCUT: usize = uncut($longest);

            fn beginning(&self) -> String {
                let mut key = String::new();
                write_uncut(&self.0, $longest, &mut key);
                key
            }
        }

        impl Segment for $name {
            fn write(&self, key: &mut String) {
                write_text(&self.0, $longest, key);
            }

            fn read(text: &str) -> Option<Self> {
                read_text(text).map(Self)
            }
        }
    };
}

text_segment! {
    /// The key of a tag, or the name of an experiment.
    Name, 700
}
text_segment! {
    /// The subject of a list of the index: a metric, a param or a field.
    Field, 400
}
text_segment! {
    /// A value or a token in a list of the index.
    Value, 200
}

/// A user's name is never truncated in a key, because its length is limited. Different users
/// therefore always have different keys.
impl Segment for UserName {
    fn write(&self, key: &mut String) {
        Name::from(self.as_str()).write(key);
    }

    fn read(text: &str) -> Option<Self> {
        Self::named(&Name::read(text)?.0)
    }
}

/// The key of the rows of a registered model: its name, prefixed with its workspace unless the
/// workspace is the default one.
///
/// The separator is a `/`. Names of workspaces contain none, and a `/` in the model's name is
/// escaped here, so that no name in one workspace is the key of a model in another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelKey {
    workspace: Option<String>,
    name: String,
}

impl ModelKey {
    /// Maximum length, in bytes, of the encoded name, without the workspace.
    const MAX_NAME_BYTES: usize = 700;

    /// Returns the key of a name in a workspace.
    #[must_use]
    pub fn of(workspace: &Workspace, name: &str) -> Self {
        let workspace = (*workspace != Workspace::default()).then(|| workspace.as_str().to_owned());
        Self { workspace, name: name.to_owned() }
    }

    /// Returns the workspace, or `None` for the default one.
    #[must_use]
    pub fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the form that attributes store. [`From`] parses it.
    #[must_use]
    pub fn to_attribute(&self) -> String {
        match &self.workspace {
            Some(workspace) => format!("{workspace}/{}", self.name),
            None => self.name.clone(),
        }
    }

    /// Returns an alternative key for the rows of a model of this name, for use if the regular key
    /// is taken. It differs from the regular key of every model, because names contain no colon.
    #[must_use]
    pub fn beside(&self, id: &str) -> Self {
        Self { workspace: self.workspace.clone(), name: format!("{}:{id}", self.name) }
    }
}

impl From<&str> for ModelKey {
    fn from(text: &str) -> Self {
        match text.split_once('/') {
            Some((workspace, name)) => Self { workspace: Some(workspace.to_owned()), name: name.to_owned() },
            None => Self { workspace: None, name: text.to_owned() },
        }
    }
}

impl Segment for ModelKey {
    fn write(&self, key: &mut String) {
        if let Some(workspace) = &self.workspace {
            key.push_str(workspace);
            key.push('/');
        }
        write_text_with(&self.name, Self::MAX_NAME_BYTES, key, |character| is_escaped(character) || character == '/');
    }

    fn read(text: &str) -> Option<Self> {
        match text.split_once('/') {
            None => Some(Self { workspace: None, name: read_text(text)? }),
            Some((workspace, name)) => {
                let workspace =
                    Workspace::stored(workspace).ok().filter(|workspace| *workspace != Workspace::default());
                Some(Self { workspace: Some(workspace?.as_str().to_owned()), name: read_text(name)? })
            }
        }
    }
}

fn is_escaped(character: char) -> bool {
    character <= '$'
}

fn write_character(character: char, key: &mut String, is_escaped: impl Fn(char) -> bool) {
    if is_escaped(character) {
        let _ = write!(key, "${:02x}", character as u32);
    } else {
        key.push(character);
    }
}

/// Returns the length, in bytes, to which a text is truncated.
const fn uncut(longest: usize) -> usize {
    longest - TRUNCATION_MARK.len() - 32
}

fn write_uncut(text: &str, longest: usize, key: &mut String) {
    let start = key.len();
    for character in text.chars() {
        let end = key.len();
        write_character(character, key, is_escaped);
        if key.len() - start > uncut(longest) {
            key.truncate(end);
            return;
        }
    }
}

fn write_text(text: &str, longest: usize, key: &mut String) {
    write_text_with(text, longest, key, is_escaped);
}

fn write_text_with(text: &str, longest: usize, key: &mut String, is_escaped: impl Fn(char) -> bool) {
    let start = key.len();
    let mut end_of_beginning = start;
    for character in text.chars() {
        if key.len() - start <= uncut(longest) {
            end_of_beginning = key.len();
        }
        write_character(character, key, &is_escaped);
    }
    if key.len() - start > longest {
        key.truncate(end_of_beginning);
        let _ = write!(key, "{TRUNCATION_MARK}{:032x}", sha256_128(text.as_bytes()));
    }
}

fn read_text(text: &str) -> Option<String> {
    let mut name = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(position) = rest.find('$') {
        name.push_str(&rest[..position]);
        let escape = rest.get(position + 1..position + 3)?;
        name.push(char::from(u8::from_str_radix(escape, 16).ok()?));
        rest = &rest[position + 3..];
    }
    name.push_str(rest);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_model_is_the_key_of_one_in_another_workspace() {
        let team = Workspace::parse("team-a").unwrap();
        let theirs = ModelKey::of(&team, "m");
        assert_eq!((theirs.text(), theirs.to_attribute()), ("team-a/m".to_owned(), "team-a/m".to_owned()));
        assert_eq!(ModelKey::from("team-a/m"), theirs);
        let here = Workspace::default();
        for name in ["m", "team-a/m", "team-a$2fm", "$74eam-a/m", "team-a:m"] {
            assert_ne!(ModelKey::of(&here, name).text(), theirs.text(), "{name}");
        }
        for (workspace, name) in [(&here, "m"), (&team, "m"), (&team, "a b#c$d"), (&here, "/"), (&team, "m:01J")] {
            let key = ModelKey::of(workspace, name);
            assert_eq!(ModelKey::read(&key.text()), Some(key), "{workspace} {name}");
        }
        assert_eq!(ModelKey::read("default/m"), None);
        // Keys of the default workspace do not contain the workspace, so they are the same as
        // before workspaces were introduced.
        assert_eq!(ModelKey::of(&here, "a b").text(), Name::from("a b").text());
        let long = "x".repeat(2_000);
        assert_eq!(ModelKey::of(&here, &long).text(), Name::from(long.as_str()).text());
        assert_ne!(ModelKey::of(&team, &long).text(), ModelKey::of(&here, &long).text());
    }
}
