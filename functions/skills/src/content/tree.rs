//! The files of an archive, and the check that every file system can tell their names apart
//! (`TreeLayout`).

use std::collections::{HashMap, HashSet};

use mlflow_api::skills::composed_path;
use mlflow_api::{Error, Result};

/// Maximum total length of all paths of an archive, in bytes, those of implied directories included.
/// A path is stored several times, so they take about five times as much memory.
const MAX_PATH_BYTES: usize = 4 << 20;

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContentFile {
    /// Path relative to the skill's directory, in Unicode's normalization form C.
    pub(crate) path: String,
    /// Content.
    pub(crate) content: Vec<u8>,
}

/// The paths of the files and directories of an archive. No two paths may differ only by case or by
/// their Unicode normalization, because some file systems do not distinguish such paths.
#[derive(Default)]
pub(super) struct Tree {
    files: HashSet<String>,
    directories: HashSet<String>,
    composed: HashMap<String, String>,
    folded: HashMap<String, String>,
    path_bytes: usize,
}

impl Tree {
    /// Adds a file or a directory, and the directories that contain it. Returns the path of a file
    /// in Unicode's normalization form C, and the path of a directory unchanged.
    pub(super) fn add(&mut self, path: &str, is_directory: bool) -> Result<String> {
        for (end, _) in path.match_indices('/') {
            self.add_directory(path.get(..end).unwrap_or_default(), path)?;
        }
        if is_directory {
            self.add_directory(path, path)?;
            return Ok(path.to_owned());
        }
        if self.directories.contains(path) {
            return Err(Error::invalid(format!("Entry '{path}' is a file, but '{path}' is also a directory.")));
        }
        let composed = self.register(path)?;
        self.files.insert(path.to_owned());
        Ok(composed)
    }

    fn add_directory(&mut self, directory: &str, of: &str) -> Result<()> {
        if self.directories.contains(directory) {
            return Ok(());
        }
        if self.files.contains(directory) {
            return Err(Error::invalid(format!("Entry '{of}' uses '{directory}' as a directory, but it is a file.")));
        }
        self.register(directory)?;
        self.directories.insert(directory.to_owned());
        Ok(())
    }

    fn register(&mut self, path: &str) -> Result<String> {
        self.path_bytes += path.len();
        if self.path_bytes > MAX_PATH_BYTES {
            return Err(Error::invalid(format!("The paths of the archive have more than {MAX_PATH_BYTES} bytes.")));
        }
        let composed = composed_path(path);
        if let Some(previous) = self.composed.get(&composed) {
            return Err(Error::invalid(if previous == path {
                format!("Path '{path}' appears more than once.")
            } else {
                format!(
                    "Paths '{previous}' and '{path}' normalize to the same path '{composed}'; the skill tree is ambiguous."
                )
            }));
        }
        // Approximates Unicode's case folding, which the standard library lacks. Without the step
        // to upper case, `ß` would differ from `ss`.
        let folded = composed.to_uppercase().to_lowercase();
        if let Some(previous) = self.folded.get(&folded) {
            return Err(Error::invalid(format!(
                "Paths '{previous}' and '{path}' differ only by letter case; the skill tree is ambiguous on \
                 case-insensitive filesystems."
            )));
        }
        self.composed.insert(composed.clone(), path.to_owned());
        self.folded.insert(folded, path.to_owned());
        Ok(composed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implied_directories_count_towards_the_length_of_all_paths() {
        let mut tree = Tree::default();
        let deep = "x".repeat(31);
        let deep = [deep.as_str(); 126].join("/");
        let added = (0..100).try_for_each(|number| tree.add(&format!("{number}/{deep}"), false).map(drop));
        assert!(added.unwrap_err().message.starts_with("The paths of the archive"));
    }

    #[test]
    fn names_that_some_system_takes_for_the_same_are_refused() {
        let add = |paths: &[(&str, bool)]| {
            let mut tree = Tree::default();
            paths.iter().try_for_each(|(path, is_directory)| tree.add(path, *is_directory).map(drop))
        };
        assert!(add(&[("a", true), ("a/b", false), ("a/c", false), ("a", true), ("d/e/f", false)]).is_ok());
        for paths in [
            [("a", false), ("a", false)],
            [("a", false), ("A", false)],
            [("a/x", false), ("A/y", false)],
            [("a", false), ("a/b", false)],
            [("a/b", false), ("a", false)],
            [("\u{e4}", false), ("a\u{308}", false)],
            [("stra\u{df}e", false), ("STRASSE", false)],
        ] {
            assert!(add(&paths).is_err(), "{paths:?}");
        }
    }
}
