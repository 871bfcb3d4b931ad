//! Checks the sections of `template.yaml` that the program `template` generates.

use std::fs;

use domains::{functions, template};

use crate::repository;

#[test]
fn the_template_matches_the_list_of_all_domains() {
    let found = fs::read_to_string(repository("template.yaml")).unwrap();
    let expected = template::generate(&found, &functions().collect::<Vec<_>>()).unwrap();
    assert!(found == expected, "template.yaml is outdated; run `make docs`");
}
