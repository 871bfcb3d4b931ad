//! What is generated from this crate stands in the repository as generated. `UPDATE_DOCS=1` writes it anew.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::fs;
use std::path::PathBuf;

fn repository(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

fn check(file: &str, expected: &str) {
    let path = repository(file);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{file} is not what the code says; run `make docs`");
}

#[test]
fn the_table_reference_is_up_to_date() {
    check("docs/table.md", &key_schema::document::markdown());
}

#[test]
fn the_deployed_table_is_the_defined_one() {
    const BEGIN: &str = "      # --- generated from the key-schema crate by `make docs`: begin\n";
    const END: &str = "      # --- generated from the key-schema crate by `make docs`: end\n";
    let template = fs::read_to_string(repository("template.yaml")).unwrap();
    let (before, rest) = template.split_once(BEGIN).expect("template.yaml has a marked part");
    let (_, after) = rest.split_once(END).expect("the marked part ends");
    check("template.yaml", &[before, BEGIN, &key_schema::definition::cloudformation(), END, after].concat());
}
