// At a local address, the Assistant opens automatically once. This marks it as already opened.
localStorage.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");
// No telemetry is collected, so the notice is dismissed.
localStorage.setItem("mlflow.telemetry.info.alert.dismissed_v1", "true");
