//! Interrupts or throttles each request of a pass, or loses its response. All invariants must hold
//! at every moment, and the next pass must result in the state of an undisturbed one.

use embedded_engine::faults::InjectedFault;

use super::test_packer::{TIME, TestPacker};
use super::{MINUTE, small};
use crate::Logged;

/// Sets up three blocks of three traces, and new traces. Of the packed traces, two are then changed
/// and one is deleted. One of the new traces is older than existing blocks, so a block is split in
/// two.
async fn lab() -> TestPacker {
    let lab = TestPacker::with_sizes(small()).await;
    for number in 0..9 {
        lab.put(number, TIME + 10 * i64::from(number)).await;
    }
    lab.pack_after(5 * MINUTE).await;
    assert_eq!(lab.counts().await, [3, 3, 3]);
    lab.tag(4, "changed").await;
    lab.delete(0).await;
    lab.put(20, TIME + 35).await;
    lab.add_span(7, "second").await;
    lab.tag(7, "with a span").await;
    for number in 30..34 {
        lab.put(number, TIME + 100 + i64::from(number)).await;
    }
    lab.carry_over().await;
    lab.passes(5 * MINUTE);
    lab.check().await;
    lab
}

#[tokio::test]
async fn a_pass_may_end_anywhere() {
    Box::pin(passes_end_at(8, 30)).await;
}

#[tokio::test]
#[ignore = "takes eight seconds of a core; part of `make test-slow`"]
async fn a_pass_may_end_at_every_second_request() {
    Box::pin(passes_end_at(2, 12)).await;
}

/// Injects the first kind of fault at every `step`-th request, and each other kind at every
/// `step_of_others`-th request.
async fn passes_end_at(step: usize, step_of_others: usize) {
    let begin = Box::pin(lab()).await;
    let undisturbed = begin.copy().await;
    undisturbed.faults().reset_calls();
    assert!(undisturbed.pack_through_faults().await);
    let calls: u64 = undisturbed.faults().all_calls().iter().map(|(_, calls)| calls).sum();
    let (expected, spans) = (undisturbed.counts().await, undisturbed.spans().await.len());
    assert!(undisturbed.marks().await.is_empty());
    // The faults: interrupted before or after a request; throttled, response lost or refused once;
    // and a batch that is executed only in part.
    let troubles = [
        (InjectedFault::Throttled, u64::MAX),
        (InjectedFault::AnswerLost, u64::MAX),
        (InjectedFault::Throttled, 1),
        (InjectedFault::AnswerLost, 1),
        (InjectedFault::Conflict, 1),
        (InjectedFault::Halved, 1),
    ];
    for (at, (trouble, times)) in (1..).zip(troubles) {
        let step = if at == 1 { step } else { step_of_others };
        for failing in (at..=calls).step_by(step) {
            let lab = begin.copy().await;
            lab.faults().trouble_at(trouble, failing, times);
            let is_done = lab.pack_through_faults().await;
            lab.faults().work_again();
            lab.check().await;
            let said = format!("{trouble:?} at {failing}, {times} times");
            // If only the last request fails, the pass has done its work, because this request
            // releases the lock, which expires anyway.
            assert_eq!(is_done, times == 1 || failing == calls, "{said}");
            // The next pass starts after the lock of the interrupted one has expired.
            lab.passes(5 * MINUTE);
            lab.ask().await;
            lab.carry_over().await;
            lab.check().await;
            assert!(lab.marks().await.is_empty(), "{said}");
            assert_eq!(lab.counts().await, expected, "{said}");
            // Spans that no block refers to any more may be left.
            assert!(lab.spans().await.len() >= spans, "{said}");
        }
    }
}

/// A pass that cannot access the table is repeated. It logs nothing itself, because the indexer
/// logs the error once.
#[tokio::test]
async fn passes_wait_while_the_table_cannot_be_used() {
    let begin = Box::pin(lab()).await;
    for trouble in [InjectedFault::Denied, InjectedFault::KeyDisabled] {
        let lab = begin.copy().await;
        let logged = Logged::default();
        let writer = logged.clone();
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR).with_writer(move || writer.clone());
        let guard = tracing::subscriber::set_default(log.finish());
        for _ in 0..15 {
            lab.faults().trouble_at(trouble, 1, u64::MAX);
            assert!(!lab.pack_through_faults().await, "{trouble:?}");
        }
        drop(guard);
        let lines = logged.lines();
        let [line] = lines.as_slice() else { panic!("{lines:#?}") };
        assert!(line.contains("the table cannot be used"), "{line}");
        lab.faults().work_again();
        lab.carry_over().await;
        lab.check().await;
        assert!(lab.marks().await.is_empty(), "{trouble:?}");
    }
}
