//! Gates, each of which pauses one call while all other calls proceed.

use tokio::sync::oneshot;

/// The point at which a gate pauses a call: before or after its execution.
#[derive(Clone, Copy)]
pub(super) enum GatePosition {
    Before,
    After,
}

/// A call that a gate is going to pause, with the injector's end of the gate.
pub(super) struct PausedCall {
    pub(super) moment: GatePosition,
    operation: String,
    calls_to_go: u64,
    held: oneshot::Sender<()>,
    opened: oneshot::Receiver<()>,
}

/// A gate that pauses one call until the gate is opened or dropped.
#[derive(Debug)]
#[must_use = "a gate that is dropped is open"]
pub struct Gate {
    held: Option<oneshot::Receiver<()>>,
    open: oneshot::Sender<()>,
}

pub(super) fn gate(moment: GatePosition, operation: &str, nth: u64) -> (PausedCall, Gate) {
    let (held, on_held) = oneshot::channel();
    let (open, opened) = oneshot::channel();
    let pause = PausedCall { moment, operation: operation.to_owned(), calls_to_go: nth.max(1), held, opened };
    (pause, Gate { held: Some(on_held), open })
}

impl PausedCall {
    /// Counts a call, and returns whether it is the call that the gate pauses.
    pub(super) fn is_reached_by(&mut self, operation: &str) -> bool {
        if operation == self.operation {
            self.calls_to_go -= 1;
        }
        self.calls_to_go == 0
    }

    pub(super) async fn hold(self) {
        // Sending and receiving fail only if the gate was dropped, and a dropped gate is open.
        let _ = self.held.send(());
        let _ = self.opened.await;
    }
}

impl Gate {
    /// Waits until the call is at the gate. Returns immediately if it is there already.
    pub async fn reached(&mut self) {
        if let Some(held) = &mut self.held {
            // An error means that the injector was dropped, so no call will arrive.
            let _ = held.await;
            self.held = None;
        }
    }

    /// Lets the call proceed.
    pub fn open(self) {
        // An error means that the call was cancelled, or never arrived.
        let _ = self.open.send(());
    }
}
