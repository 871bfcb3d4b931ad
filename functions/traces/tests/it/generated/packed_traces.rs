//! Requests for packed traces, before and after their spans are archived.

use artifact_store::ArtifactStore;
use mlflow_api::Workspace;
use retention::Retention;
use table::Table;
use test_site::ledger::{CostLedger, MeteredProcesses, budget};
use traces::store::Store;

use super::packed_searches::{check_all_packed, pack_now, packer, put_unpacked};
use super::{get, get_ten, granted, process};
use crate::counting_archive::CountingArchive;

pub(crate) async fn all(ledger: &mut CostLedger) {
    ledger.section("Requests for packed traces");
    let (packers, document) = packer(None).await;
    let partition = put_unpacked(&packers, &document, 1).await;
    pack_now(&packers.store, &partition).await;
    check_all_packed(&packers, &partition).await;
    let archive = CountingArchive::default();
    let started = process(packers.table().clone()).prepared().await.unwrap();
    let opened = archive.open();
    let process = move |table: Table| process(table).with_retention_cache_of(&started).with_archive(opened.clone());
    let bench = MeteredProcesses::new(packers.table().clone(), process);
    let one = budget([3.0, 0.0, 10.0], [3.0, 0.0, 10.0]);
    ledger
        .row("get a packed trace with its spans", one, &bench, [1_u32, 2], async |store, number| {
            get(store, *number).await;
        })
        .await;
    let ten = budget([3.0, 0.0, 20.0], [3.0, 0.0, 20.0]);
    ledger
        .row("get ten packed traces of one block with their spans", ten, &bench, [(), ()], async |store, ()| {
            get_ten(store, 11).await;
        })
        .await;
    let tag = budget([5.0, 3.0, 6.0], [5.0, 3.0, 6.0]);
    ledger.row("set a tag of a packed trace", tag, &bench, [201_u32, 202], set_tag).await;
    let retention = Retention::new(bench.table().clone(), ArtifactStore::default()).with_archive(archive.open());
    let now = (partition.day + 32) * 86_400_000;
    retention.archive_traces(&Workspace::default(), now).await.unwrap();
    let one = budget([2.0, 0.0, 6.0], [2.0, 0.0, 6.0]);
    ledger
        .row("get an archived trace with its spans; bucket: GET", one, &bench, [1_u32, 2], async |store, number| {
            let before = archive.reads();
            get(store, *number).await;
            assert_eq!(archive.reads() - before, 1);
        })
        .await;
    let ten = budget([2.0, 0.0, 15.0], [2.0, 0.0, 15.0]);
    ledger
        .row(
            "get ten archived traces of one block with their spans; bucket: GET",
            ten,
            &bench,
            [(), ()],
            async |store, ()| {
                let before = archive.reads();
                get_ten(store, 11).await;
                assert_eq!(archive.reads() - before, 1);
            },
        )
        .await;
    let tag = budget([5.0, 3.0, 6.0], [5.0, 3.0, 6.0]);
    ledger
        .row("set a tag of an archived trace", tag, &bench, [301_u32, 302], async |store, number| {
            let before = archive.reads();
            set_tag(store, number).await;
            assert_eq!(archive.reads(), before);
        })
        .await;
}

async fn set_tag(store: &Store, number: &u32) {
    let trace = granted(store, *number).await;
    store.trace_set_tag(&trace, "team", "search").await.unwrap();
}
