"""Compiles for Lambda and for any Linux. zig is the linker and the C compiler, so every machine can
build for every processor.
"""

import os
import subprocess
from pathlib import Path

#: By Lambda's names of processors.
TRIPLES = {"arm64": "aarch64", "x86_64": "x86_64"}
#: Ends of the triples of the program, by its systems.
SYSTEMS = {"linux": "unknown-linux-musl", "macos": "apple-darwin"}


def function_names(repository: Path) -> list[str]:
    """Returns the names of all functions. A function's crate, program and directory have the same
    name.
    """
    return [crate.parent.name for crate in sorted(repository.glob("functions/*/Cargo.toml"))]


def functions(repository: Path, processor: str, profile: str) -> dict[str, Path]:
    """Builds all functions with one invocation of cargo, so that shared crates are compiled
    once. The program is built separately, because cargo unifies features within an invocation."""
    names = function_names(repository)
    packages = [argument for name in names for argument in ("--package", name, "--bin", name)]
    return _built(repository, f"{TRIPLES[processor]}-unknown-linux-gnu", profile, names, packages)


def program(repository: Path, processor: str, profile: str, system: str = "linux") -> Path:
    """Builds the program. For Linux, it is linked with musl, so it depends on nothing but the kernel.

    cargo-lambda optimizes releases for the processors of Lambda. On older processors, such a
    program would crash with an illegal instruction.
    """
    name = "mlflow-serverless"
    arguments = ["--package", name, "--bin", name, "--features", "standalone"]
    if system == "macos":
        return _built_on_macos(repository, f"{TRIPLES[processor]}-{SYSTEMS[system]}", profile, name, arguments)
    arguments.append("--disable-optimizations")
    return _built(repository, f"{TRIPLES[processor]}-unknown-linux-musl", profile, [name], arguments)[name]


def _built_on_macos(repository: Path, triple: str, profile: str, name: str, arguments: list[str]) -> Path:
    """Builds with cargo and the linker of macOS. zig cannot link the program, because the crate
    that reads the system's root certificates needs frameworks from Apple's SDK."""
    subprocess.run(["rustup", "target", "add", triple], cwd=repository, check=True)
    output = repository / "target" / "for-release" / triple / profile
    command = ["cargo", "build", "--locked", "--profile", profile, "--target", triple, "--target-dir", output, *arguments]
    subprocess.run(command, cwd=repository, check=True)
    return output / triple / ("debug" if profile == "dev" else profile) / name


def _built(repository: Path, triple: str, profile: str, names: list[str], arguments: list[str]) -> dict[str, Path]:
    subprocess.run(["rustup", "target", "add", triple], cwd=repository, check=True)
    output = repository / "target" / "for-release" / triple / profile
    command = ["cargo", "lambda", "build", "--locked", "--profile", profile, "--target", triple, "--lambda-dir", output, *arguments]
    environment = os.environ
    if profile == "dev":
        # A trial build is fast to compile, and does not need debug information.
        environment = {**os.environ, "CARGO_PROFILE_DEV_DEBUG": "false", "CARGO_PROFILE_DEV_OPT_LEVEL": "0", "CARGO_PROFILE_DEV_STRIP": "true"}
    subprocess.run(command, cwd=repository, env=environment, check=True)
    return {name: output / name / "bootstrap" for name in names}
