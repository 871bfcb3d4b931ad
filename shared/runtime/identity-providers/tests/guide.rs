//! The configuration files in the guide can be stored as they are.

use std::fs;
use std::path::Path;

use identity_providers::Configuration;

/// Number of configuration files in the guide, at least. Fewer mean that they are not found.
const FILES: usize = 12;

/// Returns the blocks of TOML in a page.
fn blocks(page: &str) -> Vec<&str> {
    let starts = page.split("\n```toml\n").skip(1);
    starts.filter_map(|rest| rest.split_once("\n```\n").map(|(block, _)| block)).collect()
}

#[test]
fn configurations_in_the_guide_are_valid() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/guide");
    let mut found = 0;
    for entry in fs::read_dir(guide).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("sign-on") {
            continue;
        }
        let page = fs::read_to_string(&path).unwrap();
        for block in blocks(&page) {
            let checked = Configuration::from_toml(block).and_then(|configuration| configuration.validate());
            assert!(checked.is_ok(), "{name}: {}\n{block}", checked.unwrap_err());
            found += 1;
        }
    }
    assert!(found >= FILES, "only {found} configurations in the guide");
}
