"""The command line `mlflow-serverless-dump`."""

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence

from mlflow_serverless_dump.report import Report, UsageError

_PARTS = ("logged-models", "traces", "registry")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mlflow-serverless-dump", description="Writes a SQLite database for `mlflow-serverless import --from sqlite:///FILE`.")
    commands = parser.add_subparsers(dest="command", required=True)
    tracking = commands.add_parser("tracking", help="read from a tracking server of any kind")
    tracking.add_argument("--from", dest="source", required=True, metavar="TRACKING_URI", help="URI as in MLFLOW_TRACKING_URI")
    tracking.add_argument("--registry", metavar="URI", help="URI of the model registry (default: the tracking URI)")
    tracking.add_argument("--to", required=True, metavar="FILE", help="SQLite file; an unfinished dump is continued")
    tracking.add_argument("--experiment", action="append", metavar="ID", help="dump only this experiment (repeatable)")
    tracking.add_argument("--skip", action="append", choices=_PARTS, default=[], help="leave out a kind of entity (repeatable)")
    tracking.add_argument("--parallel", type=_positive, default=8, metavar="N", help="concurrent requests (default: 8)")
    neptune = commands.add_parser("neptune", help="read the Parquet files of neptune-exporter")
    neptune.add_argument("--from", dest="source", required=True, metavar="DIRECTORY", help="directory with Parquet files")
    neptune.add_argument("--to", required=True, metavar="FILE", help="SQLite file; an unfinished dump is continued")
    neptune.add_argument("--files", metavar="URI", help="where the exported files are or will be (default: DIRECTORY/../files)")
    neptune.add_argument("--step-multiplier", type=_positive, default=1, metavar="N", help="factor that makes fractional steps whole numbers (default: 1)")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command, and returns its exit code: 0 on success, 1 if something could not be
    dumped, 2 if nothing was attempted.
    """
    options = _parser().parse_args(arguments)
    # Set before MLflow is imported. It would print a progress bar of its own.
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    needed = ["mlflow", "sqlalchemy"] + (["pyarrow"] if options.command == "neptune" else [])
    for package in needed:
        if importlib.util.find_spec(package) is None:
            print(f"error: {package} is not installed: pip install 'mlflow-serverless-auth[{'neptune' if package == 'pyarrow' else 'dump'}]'", file=sys.stderr)
            return 2
    report = Report()
    try:
        if options.command == "tracking":
            from mlflow_serverless_dump import tracking

            tracking.dump(tracking.Options(options.source, options.registry, options.to, options.experiment, frozenset(options.skip), options.parallel), report)
        else:
            from mlflow_serverless_dump import neptune

            neptune.dump(neptune.Options(options.source, options.to, options.files, options.step_multiplier), report)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted. Run the command again to continue.", file=sys.stderr)
        return 1
    report.print()
    return 1 if report.has_failures else 0
