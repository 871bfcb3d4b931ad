//! If the feature `embedded` is enabled, generates a list of the files in the UI build, which is
//! compiled into the program together with the files. Does nothing otherwise.

use std::collections::hash_map::DefaultHasher;
use std::error::Error;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Environment variable with the directory of a UI build. If it is not set, the build of `make ui`
/// is used.
const VARIABLE: &str = "EMBEDDED_UI";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    if env::var_os("CARGO_FEATURE_EMBEDDED").is_none() {
        return Ok(());
    }
    let of_make = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../ui/build");
    let build = env::var_os(VARIABLE).map_or(of_make, PathBuf::from);
    println!("cargo:rerun-if-changed={}", build.display());
    if !build.join("index.html").is_file() {
        return Err(format!("{} has no build of MLflow's UI: `make ui` fetches it", build.display()).into());
    }
    let mut files = Vec::new();
    find(&build.canonicalize()?, "", &mut files)?;
    files.sort();
    let mut list = String::from("static FILES: &[File] = &[\n");
    for (name, path) in files {
        let compressed = PathBuf::from(format!("{}.gz", path.display()));
        let is_gzip = compressed.is_file();
        let stored = if is_gzip { compressed } else { path };
        let mut hash = DefaultHasher::new();
        fs::read(&stored)?.hash(&mut hash);
        let stored = stored.to_str().ok_or("the path of the build is not UTF-8")?;
        let tag = format!("\"{:016x}\"", hash.finish());
        writeln!(
            list,
            "    File {{ name: {name:?}, content: include_bytes!({stored:?}), is_gzip: {is_gzip}, tag: {tag:?} }},"
        )?;
    }
    list.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("files.rs"), list)?;
    Ok(())
}

/// Collects the files below a directory with their names, except compressed copies.
fn find(directory: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_str().ok_or("a file's name is not UTF-8")?);
        if entry.file_type()?.is_dir() {
            find(&entry.path(), &format!("{name}/"), files)?;
        } else if entry.path().extension().is_none_or(|extension| extension != "gz") {
            files.push((name, entry.path()));
        }
    }
    Ok(())
}
