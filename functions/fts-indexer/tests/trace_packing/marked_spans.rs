//! Traces whose spans are in their marks.

use super::test_packer::{TIME, TestPacker};
use super::{MINUTE, small};

const LAYOUT_BEFORE_POINTERS: i64 = 7;

/// Returns the number of marks with spans.
async fn marks_with_spans(lab: &TestPacker) -> usize {
    lab.items("M#").await.iter().filter(|mark| mark.get("content").is_some()).count()
}

/// Returns three traces whose spans are in their marks, and that are ready to be packed.
async fn lab() -> TestPacker {
    let lab = TestPacker::with_sizes(small()).await;
    for number in [1, 3, 5] {
        lab.put(number, TIME + i64::from(number)).await;
    }
    lab.carry_over().await;
    lab.passes(5 * MINUTE);
    assert_eq!((marks_with_spans(&lab).await, lab.items("T#SPANS").await.len()), (3, 0));
    lab
}

#[tokio::test]
async fn spans_in_a_mark_stay_while_a_document_refers_to_them() {
    let undisturbed = lab().await;
    undisturbed.faults().reset_calls();
    assert!(undisturbed.pack_through_faults().await);
    assert_eq!((undisturbed.counts().await, undisturbed.items("M#").await.len()), (vec![3], 0));
    let puts = undisturbed.faults().calls("PutItem");
    assert!(puts >= 5, "the lock, the block, and three pointers");
    // A trace changes, moves or is deleted before each write of the packer.
    for nth in 1..=puts {
        for change in 0..3 {
            let lab = lab().await;
            let mut gate = lab.faults().pause_before("PutItem", nth);
            let changes = async {
                gate.reached().await;
                match change {
                    0 => lab.tag(3, "changed").await,
                    1 => lab.put_again(3, TIME + 100).await,
                    _ => lab.delete(3).await,
                }
                lab.check().await;
                gate.open();
            };
            tokio::join!(lab.pack_through_faults(), changes);
            lab.check().await;
            lab.passes(5 * MINUTE);
            lab.ask().await;
            lab.carry_over().await;
            lab.check().await;
            assert_eq!(lab.items("M#").await.len(), 0, "change {change} before {nth}");
            assert_eq!(lab.items("T#SPANS").await.len(), 0, "change {change} before {nth}");
        }
    }
}

#[tokio::test]
async fn spans_of_an_export_that_created_no_trace_are_deleted() {
    let lab = lab().await;
    // The first export was interrupted, and the second one found a trace that another one had created.
    lab.put_spans_in_mark(7, "interrupted", TIME + 7).await;
    lab.put_spans_in_mark(3, "late", TIME + 3).await;
    lab.check().await;
    lab.passes(5 * MINUTE);
    lab.ask().await;
    lab.carry_over().await;
    lab.check().await;
    assert_eq!(lab.marks().await.len(), 1, "a client may repeat the first export");
    assert_eq!((lab.counts().await, marks_with_spans(&lab).await), (vec![3], 1));
    lab.passes(10 * MINUTE);
    // An export to a packed trace was interrupted.
    lab.put_spans_in_mark(5, "late", TIME + 5).await;
    lab.check().await;
    lab.passes(5 * MINUTE);
    lab.ask().await;
    lab.carry_over().await;
    lab.check().await;
    assert_eq!(lab.items("M#").await.len(), 0);
}

#[tokio::test]
async fn a_packer_of_an_earlier_layout_leaves_spans_in_marks() {
    let lab = lab().await;
    lab.put(2, TIME + 2).await;
    lab.passes(5 * MINUTE);
    lab.ask().await;
    lab.carry_over_in_layout(LAYOUT_BEFORE_POINTERS).await;
    lab.check().await;
    assert_eq!((lab.counts().await, marks_with_spans(&lab).await), (vec![1], 3));
    lab.ask().await;
    lab.carry_over().await;
    lab.check().await;
    assert_eq!(lab.items("M#").await.len(), 0);
}

#[tokio::test]
async fn spans_that_become_too_large_leave_their_mark() {
    let lab = lab().await;
    // The spans take few bytes in the mark, but do not fit into a block.
    let name = "x".repeat(600_000);
    lab.put_with_span_in_mark(7, &name, TIME + 7).await;
    lab.passes(5 * MINUTE);
    lab.ask().await;
    lab.carry_over().await;
    assert_eq!((lab.counts().await.iter().sum::<usize>(), lab.items("M#").await.len()), (4, 0));
    assert_eq!(lab.items("T#SPANS").await.len(), 1);
    assert_eq!(lab.spans_of(7).await.len(), 1);
}
