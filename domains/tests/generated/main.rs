//! Files that are generated from the list of all domains, and files that are checked against it.
//! With `UPDATE_DOCS=1`, the tests write the generated files.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests report failures by panicking")]

mod coverage;
mod gateway_paths;
mod limits;
mod mounting;
mod table_page;
mod template;
mod watch_router;

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Returns the path of a file in the repository.
fn repository(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(file)
}

/// Serializes tests that update different sections of the same file, so that they do not overwrite
/// each other's changes.
static FILE_LOCK: Mutex<()> = Mutex::new(());

/// Compares a file with its expected content, or writes it.
fn check(file: &str, expected: &str) {
    let _alone = FILE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    check_alone(file, expected);
}

fn check_alone(file: &str, expected: &str) {
    let path = repository(file);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{file} is outdated; run `make docs`");
}

/// Compares the section of a file between the lines that end with these marks with its expected
/// content, or writes it.
fn check_between(file: &str, begin: &str, end: &str, expected: &str) {
    let _alone = FILE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let text = fs::read_to_string(repository(file)).unwrap();
    let (head, rest) = text.split_once(begin).unwrap_or_else(|| panic!("no `{begin}` in {file}"));
    let line_end = rest.find('\n').unwrap() + 1;
    let (first, rest) = rest.split_at(line_end);
    let tail = rest.find(end).unwrap_or_else(|| panic!("no `{end}` in {file}"));
    let tail_line = rest[..tail].rfind('\n').map_or(0, |at| at + 1);
    check_alone(file, &format!("{head}{begin}{first}{expected}{}", &rest[tail_line..]));
}
