//! A table is rejected if its layout is later than this version's, or was never released.

use entities::attributes::LAYOUT;
use entities::layout::{self, CURRENT_LAYOUT, FIRST_LAYOUT, LayoutError};
use key_schema::rows;
use mlflow_api::{ExperimentId, Workspace};
use table::{Condition, Item, Table, number};
use tracking::store::Store;

use crate::server::ROOT;

async fn put(table: &Table, layout: i64) {
    let item = Item::new(rows::Config::key(&"layout".into())).with(LAYOUT, number(layout));
    table.put(item, &Condition::Always).await.unwrap();
}

async fn begin(table: &Table) {
    Store::new(table.clone(), ROOT).experiment_create_default(&Workspace::default()).await.unwrap();
}

#[tokio::test]
async fn a_table_has_a_layout_as_soon_as_it_has_an_experiment() {
    let site = test_site::TestEnvironment::new().await;
    assert_eq!(layout::check(&site.table).await, Ok(false));
    begin(&site.table).await;
    assert_eq!(layout::check(&site.table).await, Ok(true));
    begin(&site.table).await;
    assert_eq!(layout::check(&site.table).await, Ok(true));
}

#[tokio::test]
async fn other_layouts_are_refused() {
    let site = test_site::TestEnvironment::new().await;
    begin(&site.table).await;
    put(&site.table, CURRENT_LAYOUT + 1).await;
    assert_eq!(layout::check(&site.table).await, Err(LayoutError::TooNew(CURRENT_LAYOUT + 1, CURRENT_LAYOUT)));
    put(&site.table, FIRST_LAYOUT - 1).await;
    assert_eq!(layout::check(&site.table).await, Err(LayoutError::Unreleased));
    // The table gets a state from before layouts were numbered.
    site.table.write_many(Vec::new(), &[rows::Config::key(&"layout".into())]).await.unwrap();
    assert!(site.table.get(&rows::Experiment::key(&ExperimentId::DEFAULT)).await.unwrap().is_some());
    assert_eq!(layout::check(&site.table).await, Err(LayoutError::Unreleased));
}
