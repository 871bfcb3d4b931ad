import mlflow

mlflow.is_tracking_uri_set() or mlflow.set_tracking_uri("http://127.0.0.1:5000")  # unless MLFLOW_TRACKING_URI is set
mlflow.set_experiment("quickstart")
with mlflow.start_run(tags={"stage": "demo"}) as run:
    mlflow.log_params({"optimizer": "adam", "rate": 0.1})
    for step in range(4):
        mlflow.log_metric("loss", 0.5**step, step=step)
    mlflow.log_text("Each step halves the loss.", "notes.txt")

print("run:", mlflow.get_run(run.info.run_id).data.params)
print("history:", [point.value for point in mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")])
print("notes:", mlflow.artifacts.load_text(f"{run.info.artifact_uri}/notes.txt"))
print("search:", mlflow.search_runs(filter_string=f"run_id = '{run.info.run_id}' AND metrics.loss < 0.2")["tags.stage"][0])
