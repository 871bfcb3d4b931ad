//! Packing traces: blocks and marks always agree with the documents, no matter where a pass is
//! interrupted.

mod faults;
mod marked_spans;
mod partition_growth;
mod test_packer;

use std::time::Duration;

use entities::attributes::{TO_PACK, WAITS};
use fts_indexer::PackingThresholds;
use table::{Condition, bytes};
use trace_blocks::TracePartition;

use test_packer::{DAY, TIME, TestPacker, id, partition};

const MINUTE: i64 = 60_000;

#[tokio::test]
async fn quiet_traces_are_packed_and_their_marks_go() {
    let lab = TestPacker::new().await;
    lab.put_all(0..300, |number| TIME + i64::from(number) / 3).await;
    // The first batch schedules packing of the partition exactly once.
    lab.carry_over().await;
    assert_eq!((lab.rows("DUE#").await, lab.rows("P").await), (1, 0));
    lab.tick().await;
    assert_eq!(lab.rows("P").await, 0, "not due");
    lab.passes(3 * MINUTE);
    lab.put(300, TIME + 500).await;
    lab.carry_over().await;
    assert_eq!(lab.rows("DUE#").await, 1, "the partition has a row already");
    lab.passes(2 * MINUTE);
    lab.pack().await;
    // The blocks have 128, 128 and 44 traces. The last trace was changed too recently to be packed,
    // so the partition is scheduled again.
    assert_eq!(lab.counts().await, [44, 128, 128]);
    assert_eq!((lab.marks().await.len(), lab.rows("DUE#").await, lab.rows("L").await), (1, 1, 0));
    lab.check().await;

    // A single mark waits until there are more marks.
    lab.passes(5 * MINUTE);
    lab.pack().await;
    assert_eq!((lab.marks().await.len(), lab.rows("DUE#").await), (1, 0));
    // The newest block is filled up with new traces, and its existing spans stay in their item.
    let before = lab.spans().await;
    lab.put_all(301..340, |number| TIME + 500 + i64::from(number)).await;
    lab.pack_after(5 * MINUTE).await;
    assert_eq!(lab.counts().await, [84, 128, 128]);
    assert_eq!(lab.spans().await.intersection(&before).count(), before.len());
    lab.check().await;
}

#[tokio::test]
async fn changed_deleted_and_late_traces_are_packed_anew() {
    let sizes = PackingThresholds {
        min_new_marks: 8,
        min_changed_marks: 4,
        max_traces: 32,
        pause: Duration::ZERO,
        ..PackingThresholds::default()
    };
    let lab = TestPacker::with_sizes(sizes).await;
    Box::pin(are_packed_again(&lab, 1)).await;
}

#[tokio::test]
#[ignore = "makes more than three hundred traces; part of `make test-slow`"]
async fn they_are_in_blocks_of_the_usual_size() {
    let lab = TestPacker::new().await;
    Box::pin(are_packed_again(&lab, 4)).await;
}

/// Changes packed traces, and checks how they are packed again. With the thresholds of the test,
/// blocks have at most 32 traces, and new ones at least eight. Four changed traces are enough to
/// rewrite a block. All numbers are multiplied by `times`.
async fn are_packed_again(lab: &TestPacker, times: u32) {
    let size = |traces: u32| usize::try_from(traces * times).unwrap();
    let (first, late, older) = (0..64 * times, 300..300 + 8 * times, 400..400 + 10 * times);
    lab.put_all(first.clone(), |number| TIME + 10 * i64::from(number)).await;
    lab.pack_after(5 * MINUTE).await;
    assert_eq!(lab.counts().await, [size(32), size(32)]);
    // One trace fewer than required is changed, so all changed traces wait.
    let enough = 4 * times;
    for number in 0..enough - 1 {
        lab.tag(number, "changed").await;
    }
    let before = lab.spans().await;
    lab.pack_after(5 * MINUTE).await;
    assert_eq!(lab.marks().await.len(), size(4) - 1);
    lab.check().await;
    lab.tag(enough - 1, "changed").await;
    lab.pack_after(5 * MINUTE).await;
    assert_eq!((lab.marks().await.len(), lab.spans().await), (0, before), "the spans are the same");
    lab.check().await;

    // One trace is moved away, another one is deleted, and late ones are added that no longer fit
    // into the block.
    lab.delete(25 * times).await;
    lab.put_again(25 * times + 1, TIME + 2).await;
    lab.put_all(late.clone(), |number| TIME + i64::from(number)).await;
    lab.pack_after(5 * MINUTE).await;
    assert_eq!(lab.counts().await, [size(32), size(20) - 1, size(20)]);
    assert!(lab.marks().await.is_empty());
    assert!(lab.items("T#SPANS").await.is_empty(), "all spans are in blocks");
    lab.check().await;

    // Late traces are added that are older than all blocks.
    lab.put_all(older.clone(), |number| TIME - 1_000 + i64::from(number)).await;
    lab.pack_after(5 * MINUTE).await;
    assert_eq!(lab.counts().await, [size(32), size(20) - 1, size(20), size(10)]);
    lab.check().await;

    // When all traces of a block are deleted, the block is deleted with its spans.
    for number in first.chain(late).chain(older) {
        lab.delete(number).await;
    }
    for _ in 0..4 {
        lab.pack_after(5 * MINUTE).await;
        lab.check().await;
    }
    assert!(lab.counts().await.is_empty() && lab.marks().await.is_empty() && lab.spans().await.is_empty());
}

#[tokio::test]
async fn some_wait_and_few_do_not_wait_for_ever() {
    let lab = TestPacker::new().await;
    lab.put_all(0..100, |number| TIME + i64::from(number)).await;
    lab.with(7, "state", "IN_PROGRESS").await;
    lab.with(8, "request", &"x".repeat(20_000)).await;
    lab.pack_after(5 * MINUTE).await;
    assert_eq!((lab.counts().await, lab.marks().await), (vec![98], vec![id(8), id(7)]));
    let waiting: Vec<_> = lab.items("M#").await.into_iter().filter(|item| item.get(WAITS.name()).is_some()).collect();
    assert!(waiting.len() == 1 && waiting[0].get(TO_PACK.name()).is_none());
    lab.check().await;
    // After an hour, a trace that is still in progress is packed as it is. Its block is rewritten
    // only a day later, because it has only a single mark.
    assert_eq!(lab.rows("DUE#").await, 1);
    lab.pack_after(90 * MINUTE).await;
    assert_eq!((lab.counts().await, lab.marks().await.len()), (vec![98], 2));
    lab.pack_after(30 * 60 * MINUTE).await;
    assert_eq!((lab.counts().await, lab.marks().await.len()), (vec![99], 1));
    lab.check().await;
}

#[tokio::test]
async fn what_is_deleted_does_not_stay_in_a_block() {
    let lab = TestPacker::new().await;
    lab.put_all(0..40, |number| TIME + i64::from(number)).await;
    lab.pack_after(5 * MINUTE).await;
    // If the trace of a mark was deleted, the single mark is enough to rewrite a block. Spans
    // without a document are deleted, too.
    lab.delete(3).await;
    lab.delete_but_spans(4).await;
    lab.pack_after(5 * MINUTE).await;
    assert_eq!((lab.counts().await, lab.marks().await.len()), (vec![38], 0));
    lab.check().await;
    assert!(lab.items("T#SPANS").await.is_empty());
}

#[tokio::test]
async fn marks_that_are_put_again_stay() {
    let lab = TestPacker::new().await;
    lab.put_all(0..40, |number| TIME + i64::from(number)).await;
    lab.carry_over().await;
    lab.passes(5 * MINUTE);
    // A trace is changed while the packer writes the block.
    let mut gate = lab.faults().pause_before("DeleteItem", 1);
    let packing = lab.pack_through_faults();
    let change = async {
        gate.reached().await;
        lab.tag(3, "while it was packed").await;
        gate.open();
    };
    tokio::join!(packing, change);
    assert_eq!((lab.counts().await, lab.marks().await), (vec![40], vec![id(3)]));
    lab.check().await;
}

#[tokio::test]
async fn one_packs_at_a_time_and_none_what_is_removed() {
    let lab = TestPacker::new().await;
    lab.put_all(0..40, |number| TIME + i64::from(number)).await;
    lab.carry_over().await;
    lab.passes(5 * MINUTE);
    let lock = trace_blocks::PartitionLock::take(lab.table(), partition(), 7, lab.now()).await.unwrap().unwrap();
    lab.pack().await;
    assert_eq!((lab.counts().await.len(), lab.rows("DUE#").await), (0, 1));
    lock.give_back(lab.table()).await.unwrap();

    // The experiment is deleted before the block is written, so the block is deleted again, with
    // its spans.
    lab.passes(5 * MINUTE);
    let mut gate = lab.faults().pause_before("PutItem", 2);
    let packing = lab.pack_through_faults();
    let removal = async {
        gate.reached().await;
        lab.delete_experiment().await;
        gate.open();
    };
    tokio::join!(packing, removal);
    assert_eq!((lab.counts().await.len(), lab.spans().await.len(), lab.marks().await.len()), (0, 0, 40));
    // Leftovers in the partition of an experiment that no longer exists are deleted.
    lab.remove_experiment().await;
    lab.ask().await;
    lab.carry_over().await;
    assert_eq!((lab.rows("P").await, lab.rows("L").await), (0, 0));
}

#[tokio::test]
async fn traces_of_a_restored_experiment_are_packed() {
    let lab = TestPacker::new().await;
    lab.put_all(0..40, |number| TIME + i64::from(number)).await;
    lab.delete_experiment().await;
    lab.pack_after(5 * MINUTE).await;
    assert_eq!((lab.counts().await.len(), lab.rows("DUE#").await), (0, 1));
    lab.restore_experiment().await;
    lab.pack_after(DAY + 90 * MINUTE).await;
    assert_eq!((lab.counts().await, lab.marks().await.len()), (vec![40], 0));
    // If there is no mark, the partition of a deleted experiment is not scheduled again.
    lab.delete_experiment().await;
    lab.ask().await;
    lab.pack().await;
    assert_eq!(lab.rows("DUE#").await, 0);
}

#[tokio::test]
async fn a_block_that_cannot_be_read_keeps_no_other_from_being_packed() {
    let lab = TestPacker::with_sizes(PackingThresholds { min_new_marks: 2, min_changed_marks: 2, ..small() }).await;
    for number in 0..9 {
        lab.put(number, TIME + 10 * i64::from(number)).await;
    }
    lab.pack_after(5 * MINUTE).await;
    for number in [0, 1, 3, 4] {
        lab.tag(number, "changed").await;
    }
    lab.add_span(4, "late").await;
    let block = lab.blocks_of(&partition()).await.remove(2);
    let block = lab.table().get(&block.key()).await.unwrap().unwrap();
    lab.table().put(block.clone().with("heads", bytes(vec![1])), &Condition::Always).await.unwrap();
    for number in 20..23 {
        lab.put(number, TIME + 1_000 + i64::from(number)).await;
    }
    // The spans in the next block are damaged as well. They stay as they are, and so does the mark
    // of the trace that has got a span in the meantime.
    let middle = lab.blocks_of(&partition()).await.remove(1);
    let spans = partition().spans_key(&middle.groups()[0].digest.unwrap());
    let sound = lab.table().get(&spans).await.unwrap().unwrap();
    lab.table().put(sound.clone().with("content", bytes(vec![1])), &Condition::Always).await.unwrap();
    lab.pack_after(5 * MINUTE).await;
    assert_eq!((lab.counts().await, lab.marks().await), (vec![3, 3, 3, 3], vec![id(4), id(1), id(0)]));
    assert_eq!(lab.rows("DUE#").await, 1, "the partition is scheduled again");
    lab.table().write_many(vec![block, sound], &[]).await.unwrap();
    lab.pack_after(DAY + 90 * MINUTE).await;
    assert!(lab.marks().await.is_empty());
    lab.check().await;
}

#[tokio::test]
async fn a_partition_is_packed_by_itself() {
    let lab = TestPacker::new().await;
    lab.put_all(0..64, |number| TIME + i64::from(number) + if number % 2 == 0 { 0 } else { DAY }).await;
    lab.pack_after(5 * MINUTE).await;
    assert_eq!(lab.counts().await, [32]);
    let other = TracePartition { day: partition().day + 1, ..partition() };
    assert_eq!(lab.blocks_of(&other).await.len(), 1);
    lab.check().await;
}

/// Each block has a recent mark, and a pass has time for only one block.
#[tokio::test]
async fn a_pass_goes_on_where_the_last_one_ended() {
    let sizes = PackingThresholds { min_new_marks: 2, min_changed_marks: 2, max_duration: Duration::ZERO, ..small() };
    let lab = TestPacker::with_sizes(sizes).await;
    for number in 0..12 {
        lab.put(number, TIME + 10 * i64::from(number)).await;
    }
    lab.pack_after(5 * MINUTE).await;
    assert_eq!(lab.counts().await, [3, 3, 3, 3]);
    for number in [1, 4, 7, 10] {
        lab.tag(number, "changed").await;
    }
    for number in 20..26 {
        lab.put(number, TIME + 1_000 + i64::from(number)).await;
    }
    lab.pack_after(5 * MINUTE).await;
    assert_eq!(lab.counts().await, [3, 3, 3, 3, 3, 3]);
    lab.check().await;
    // Marks that the first passes have not processed are processed later.
    assert_eq!((lab.marks().await.len(), lab.rows("DUE#").await), (4, 1));
    lab.pack_after(30 * 60 * MINUTE).await;
    assert!(lab.marks().await.is_empty());
    lab.check().await;
}

/// Thresholds for small blocks, so that tests need few traces.
fn small() -> PackingThresholds {
    PackingThresholds {
        min_new_marks: 1,
        min_changed_marks: 1,
        max_traces: 3,
        pause: Duration::ZERO,
        ..PackingThresholds::default()
    }
}
