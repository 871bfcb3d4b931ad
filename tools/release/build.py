"""Compiles for Lambda's machines, and for any Linux. zig is the linker and the compiler of C, so any machine builds for each processor."""

import os
import subprocess
from pathlib import Path

#: By the names that Lambda gives processors.
TRIPLES = {"arm64": "aarch64", "x86_64": "x86_64"}


def function_names(repository: Path) -> list[str]:
    """A crate, its program and its folder have one name."""
    return [crate.parent.name for crate in sorted(repository.glob("functions/*/Cargo.toml"))]


def functions(repository: Path, processor: str, profile: str) -> dict[str, Path]:
    """All of them by one call, so that what they share is compiled once. The program is not among them: features of one call unify."""
    names = function_names(repository)
    packages = [argument for name in names for argument in ("--package", name, "--bin", name)]
    return _built(repository, f"{TRIPLES[processor]}-unknown-linux-gnu", profile, names, packages)


def program(repository: Path, processor: str, profile: str) -> Path:
    """Linked with musl, it needs nothing of the machine but the kernel.

    cargo-lambda compiles a release for the processors that Lambda has. Older ones would stop at the first instruction that they do not know.
    """
    name = "mlflow-serverless"
    arguments = ["--package", name, "--bin", name, "--features", "standalone", "--disable-optimizations"]
    return _built(repository, f"{TRIPLES[processor]}-unknown-linux-musl", profile, [name], arguments)[name]


def _built(repository: Path, triple: str, profile: str, names: list[str], arguments: list[str]) -> dict[str, Path]:
    subprocess.run(["rustup", "target", "add", triple], cwd=repository, check=True)
    output = repository / "target" / "for-release" / triple / profile
    command = ["cargo", "lambda", "build", "--locked", "--profile", profile, "--target", triple, "--lambda-dir", output, *arguments]
    environment = os.environ
    if profile == "dev":
        # A trial is compiled fast, and nobody looks for a line in it.
        environment = {**os.environ, "CARGO_PROFILE_DEV_DEBUG": "false", "CARGO_PROFILE_DEV_OPT_LEVEL": "0", "CARGO_PROFILE_DEV_STRIP": "true"}
    subprocess.run(command, cwd=repository, env=environment, check=True)
    return {name: output / name / "bootstrap" for name in names}
