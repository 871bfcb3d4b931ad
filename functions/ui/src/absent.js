// On a local address the Assistant opens by itself, once, unless this says that it has done so.
localStorage.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");
// Nothing is collected, so nobody has to be told.
localStorage.setItem("mlflow.telemetry.info.alert.dismissed_v1", "true");
