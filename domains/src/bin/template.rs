//! Writes the generated sections of `template.yaml`. With `--check`, it only checks whether they
//! are up to date.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
    let before = std::fs::read_to_string(&path)?;
    let after = domains::template::generate(&before, &domains::functions().collect::<Vec<_>>())?;
    if std::env::args().any(|argument| argument == "--check") {
        return if before == after { Ok(()) } else { Err("template.yaml is outdated: run `make docs`".into()) };
    }
    Ok(std::fs::write(path, after)?)
}
