//! A power cut loses no acknowledged write.

use std::path::Path;

use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use embedded_engine::Engine;
use power_cut::{DiskImage, WatchedDisk};

use crate::table::{TABLE, create, get, indexed_item, key, put};

/// Opens an engine with the content of a disk after a power cut. The returned directory has to
/// outlive the engine.
fn after(image: &DiskImage) -> (tempfile::TempDir, Engine) {
    let directory = tempfile::tempdir().unwrap();
    image.write_to(directory.path()).unwrap();
    let engine = Engine::open(directory.path()).unwrap();
    (directory, engine)
}

/// Opens the engine in a directory whose writes to disk are recorded.
fn on(directory: &Path) -> Engine {
    let sync = |log: &Path| {
        WatchedDisk::sync(log);
        Ok(())
    };
    Engine::open_syncing(directory, sync).unwrap()
}

#[tokio::test]
async fn the_engine_syncs_what_it_acknowledges() {
    let directory = tempfile::tempdir().unwrap();
    let disk = WatchedDisk::watch(directory.path(), 1);
    let engine = on(directory.path());
    let client = engine.client();
    create(&client).await;
    for number in 0..20 {
        let before = disk.syncs();
        put(&client, indexed_item("p", &number.to_string(), 1)).await;
        assert_eq!(disk.syncs(), before + 1, "the engine syncs, and SQLite does not sync as well");
        let (_directory, left) = after(&disk.cut());
        assert!(get(&left.client(), key("p", &number.to_string())).await.is_some(), "{number}");
    }
    let batch = (20..30).map(|number| {
        let put = PutRequest::builder().set_item(Some(indexed_item("p", &number.to_string(), 1))).build().unwrap();
        WriteRequest::builder().put_request(put).build()
    });
    client.batch_write_item().request_items(TABLE, batch.collect()).send().await.unwrap();
    let (_directory, left) = after(&disk.cut());
    assert_eq!(left.items(TABLE).await.unwrap(), engine.items(TABLE).await.unwrap());
}

/// After a power cut, a write is present completely or not at all, regardless of which unsynced
/// parts of it have reached the disk.
#[tokio::test]
async fn a_write_under_way_is_whole_or_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let disk = WatchedDisk::watch(directory.path(), 2);
    let engine = on(directory.path());
    create(&engine.client()).await;
    let mut states = vec![engine.items(TABLE).await.unwrap()];
    let mut images = 0;
    // This many writes cause the log to be checkpointed into the database and to start over.
    for number in 0..25 {
        let _ = disk.images();
        put(&engine.client(), indexed_item("p", &(number % 20).to_string(), 120_000)).await;
        states.push(engine.items(TABLE).await.unwrap());
        for image in disk.images() {
            images += 1;
            let (_directory, left) = after(&image);
            let left = left.items(TABLE).await.unwrap();
            assert!(states[number..].contains(&left), "after {number} writes: {} items are left", left.len());
        }
    }
    assert!(images >= 25, "{images}");
}

/// Checks that the durability test above can fail.
#[tokio::test]
async fn a_disk_that_does_not_sync_loses_writes() {
    let directory = tempfile::tempdir().unwrap();
    let disk = WatchedDisk::watch(directory.path(), 3);
    let engine = on(directory.path());
    create(&engine.client()).await;
    put(&engine.client(), key("p", "before")).await;
    disk.lose_what_is_synced();
    put(&engine.client(), key("p", "lost")).await;
    let (_directory, left) = after(&disk.cut());
    assert!(get(&left.client(), key("p", "before")).await.is_some());
    assert_eq!(get(&left.client(), key("p", "lost")).await, None);
}

/// After a power cut, the table is in the state after some write, even if later writes did not wait
/// for the disk. A write that waits for the disk also makes all earlier writes durable.
#[tokio::test]
async fn writes_ahead_of_the_disk_stay_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let disk = WatchedDisk::watch(directory.path(), 3);
    let engine = on(directory.path());
    create(&engine.client()).await;
    let mut states = vec![engine.items(TABLE).await.unwrap()];
    for number in 0..12 {
        let _ = disk.images();
        let before = disk.syncs();
        let waits = number % 4 == 3;
        let client = if waits { engine.client() } else { engine.client_ahead_of_disk() };
        put(&client, indexed_item("p", &number.to_string(), 100)).await;
        assert_eq!(disk.syncs() > before, waits, "{number}");
        states.push(engine.items(TABLE).await.unwrap());
        for image in disk.images().into_iter().chain([disk.cut()]) {
            let (_directory, left) = after(&image);
            let left = left.items(TABLE).await.unwrap();
            assert!(states.contains(&left), "after {number} writes: {} items are left", left.len());
        }
        if waits {
            let (_directory, left) = after(&disk.cut());
            assert_eq!(Some(&left.items(TABLE).await.unwrap()), states.last(), "after {number} writes");
        }
    }
}
