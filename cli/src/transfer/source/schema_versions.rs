//! The versions of MLflow's schema that can be read.

use crate::Failure;
use crate::transfer::database::Database;

/// Identifiers of MLflow's migrations (`alembic_version`), from that of MLflow 2.0 to that of 3.18.
const MIGRATIONS: [&str; 52] = [
    "97727af70f4d",
    "3500859a5d39",
    "7f2a7d5fae7d",
    "2d6e25af4d3e",
    "acf3f17fdcc7",
    "867495a8f9d4",
    "5b0e9adcef9c",
    "4465047574b1",
    "f5a4f2784254",
    "0584bdc529eb",
    "400f98739977",
    "6953534de441",
    "bda7b8c39065",
    "cbc13b556ace",
    "770bee3ae1dd",
    "a1b2c3d4e5f6",
    "de4033877273",
    "1a0cddfcaa16",
    "534353b11cbc",
    "71994744cf8e",
    "3da73c924c2f",
    "bf29a5ff90ea",
    "1bd49d398cd23",
    "b7c8d9e0f1a2",
    "5d2d30f0abce",
    "c9d4e5f6a7b8",
    "2c33131f4dae",
    "d3e4f5a6b7c8",
    "d0e1f2a3b4c5",
    "c8d9e0f1a2b3",
    "1b5f0d9ad7c1",
    "e1f2a3b4c5d6",
    "76601a5f987d",
    "c3d6457b6d8a",
    "a5b4c3d2e1f0",
    "ae8bbe7743c9",
    "7d34483879f0",
    "da6fb0208061",
    "89d3d66ed43f",
    "b7e4c1a90f23",
    "a8b9c0d1e2f3",
    "c1d2e3f4a5b6",
    "c3d9e7f1a2b4",
    "6f8d9c3b2a1e",
    "1971f2d9a75b",
    "17e22815139b",
    "b7e2c1a4d9f3",
    "75868b020152",
    "dc11669786a5",
    "e7d1f4b2a9c6",
    "8b6ad64cb8f5",
    "f4a9b2c7d1e6",
];

/// Checks that a database has a schema that can be read. Takes one query.
///
/// # Errors
/// The schema is older than that of MLflow 2.0, or newer than that of 3.18.
pub(super) async fn check(database: &Database) -> Result<(), Failure> {
    let rows = database.rows("SELECT version_num FROM alembic_version", Vec::new()).await?;
    let version = rows.first().map(|row| row.text(0)).transpose()?.unwrap_or_default();
    if MIGRATIONS.contains(&version.as_str()) {
        return Ok(());
    }
    Err(format!(
        "the database has the schema version {version:?}, and this program reads those of MLflow 2.0 to 3.18. If the \
         database is older, run `mlflow db upgrade` on a copy of it. If it is newer, use a later version of \
         mlflow-serverless"
    )
    .into())
}
