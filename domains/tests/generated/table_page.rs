//! Generated descriptions of the tables: `docs/reference/table.md`, and sections of
//! `template.yaml`.

use key_schema::definition::{ACCESS, DATA};

use super::{check, check_between};

#[test]
fn the_table_reference_is_up_to_date() {
    check("docs/reference/table.md", &key_schema::table_reference::markdown());
}

#[test]
fn the_deployed_tables_are_the_defined_ones() {
    for (table, definition) in [("data", DATA), ("access", ACCESS)] {
        let mark = format!("table of {table}, generated from the key-schema crate by `make docs`");
        check_between(
            "template.yaml",
            &format!("{mark}: begin"),
            &format!("{mark}: end"),
            &definition.cloudformation(),
        );
    }
}
