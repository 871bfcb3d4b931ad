//! What a cold start prepares, from the function's environment.

use artifact_store::Artifacts;
use table::Table;

use crate::store::Store;

/// Bytes of the longest upload that is taken.
const LONGEST_VARIABLE: &str = "MAX_ARTIFACT_SIZE";

/// The store over the table of the environment ([`Table::from_environment`]). `ARTIFACT_ROOT` is where experiments keep their
/// artifacts; [`Artifacts::from_environment`] says where the server keeps them. Uploads have at most `MAX_ARTIFACT_SIZE` bytes, any number where
/// that is not set. Looks at the table's layout, so that the connection stands before the first call.
///
/// # Errors
/// A variable is missing or makes no sense, the table cannot be reached, or it has the layout of another version.
pub async fn store_from_environment() -> Result<Store, Box<dyn std::error::Error + Send + Sync>> {
    let artifact_root =
        std::env::var("ARTIFACT_ROOT").map_err(|_| "the environment variable ARTIFACT_ROOT is not set")?;
    let artifacts = Artifacts::from_environment(&artifact_root);
    if let Some(directory) = artifacts.directory() {
        directory.remove_leftovers().await?;
    }
    let longest = longest(std::env::var(LONGEST_VARIABLE).ok().as_deref())?;
    let store = Store::new(Table::from_environment().await?, artifacts).taking_at_most(longest);
    entities::layout::check(service::Store::table(&store)).await?;
    Ok(store)
}

/// The limit that the variable sets: none where it is missing or empty.
fn longest(variable: Option<&str>) -> Result<Option<u64>, String> {
    let Some(bytes) = variable.filter(|bytes| !bytes.is_empty()) else { return Ok(None) };
    // A limit that cannot be read is not taken for none.
    bytes.parse().map(Some).map_err(|_| format!("{LONGEST_VARIABLE} is not a number of bytes: {bytes}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_not_there() {
        assert_eq!(
            (longest(None), longest(Some("")), longest(Some("1048576"))),
            (Ok(None), Ok(None), Ok(Some(1 << 20)))
        );
        for wrong in ["-1", "1 MB", "1.5", "99999999999999999999"] {
            assert_eq!(longest(Some(wrong)), Err(format!("MAX_ARTIFACT_SIZE is not a number of bytes: {wrong}")));
        }
    }
}
