//! The page. Each test measures one section of it.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::PathBuf;

/// How much a comparison with fewer entities may differ from the page.
const TOLERANCE: f64 = 0.04;
/// Differences of smaller figures may be as large as those of this figure.
const MIN_COMPARED: f64 = 400.0;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/stored-bytes.md")
}

/// Splits the page into what precedes a section, the section, and what follows.
fn split<'a>(page: &'a str, title: &str) -> (&'a str, &'a str, &'a str) {
    let begin = page.find(title).unwrap();
    let end = page[begin + title.len()..].find("\n## ").map_or(page.len(), |at| begin + title.len() + at);
    (&page[..begin], &page[begin..end], &page[end..])
}

/// Returns the title of a section, which is its first line.
fn title(section: &str) -> &str {
    section.lines().next().unwrap()
}

/// Returns the figures of a section, in the order of its cells.
fn figures(section: &str) -> Vec<f64> {
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| bytes"));
    rows.flat_map(|row| row.split('|').filter_map(|cell| cell.trim().parse().ok()).collect::<Vec<f64>>()).collect()
}

/// Checks that a section measured with fewer entities is about the same as the one of the page.
pub(super) fn compare(measured: &str) {
    let page = fs::read_to_string(path()).unwrap();
    let (here, there) = (figures(measured), figures(split(&page, title(measured)).1));
    assert_eq!(here.len(), there.len(), "the page has other rows");
    let differs = |(here, there): &(&f64, &f64)| (*here - *there).abs() > TOLERANCE * there.max(MIN_COMPARED);
    let different: Vec<_> = here.iter().zip(&there).filter(differs).collect();
    assert!(different.is_empty(), "measured and written: {different:?}\n{here:?}\n{there:?}");
}

/// Checks that the page has exactly this section. With `UPDATE_DOCS`, writes it first.
pub(super) fn check(measured: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        replace(measured);
    }
    let page = fs::read_to_string(path()).unwrap();
    let written = split(&page, title(measured)).1;
    assert_eq!(written.trim_end(), measured.trim_end(), "run this test with `UPDATE_DOCS=1`");
}

/// Replaces a section of the page. The lock keeps another process from replacing its section at
/// the same time.
fn replace(measured: &str) {
    let mut file = File::options().read(true).write(true).open(path()).unwrap();
    file.lock().unwrap();
    let mut page = String::new();
    file.read_to_string(&mut page).unwrap();
    let (before, _, after) = split(&page, title(measured));
    let page = format!("{before}{}\n{after}", measured.trim_end());
    file.rewind().unwrap();
    file.set_len(0).unwrap();
    file.write_all(page.as_bytes()).unwrap();
}
