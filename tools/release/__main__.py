"""Builds the archives of a release:
`python tools/release [--processors arm64 x86_64] [--profile release]`.

Run by `make release`. For each processor, builds an archive that deploys the stack without Rust,
the program for Linux or, on a Mac, for macOS, and a bill of materials of each. Requires the environment of `make deploy`
(cargo-lambda and zig), and MLflow's user interface in `ui/`.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import build
from contents import cloudshell_script, function_archive, program_archive
from digests import write_digests

REPOSITORY = Path(__file__).resolve().parents[2]


def main() -> None:
    said = _arguments()
    said.output.mkdir(parents=True, exist_ok=True)
    ui = REPOSITORY / "ui"
    if not (ui / "build/index.html").is_file():
        sys.exit("The user interface is missing: make ui")
    try:
        for processor in said.processors:
            if "functions" in said.only:
                functions = build.functions(REPOSITORY, processor, said.profile)
                print(function_archive(REPOSITORY, processor, functions, ui, said.output), flush=True)
            if "program" in said.only:
                program = build.program(REPOSITORY, processor, said.profile, said.system)
                print(program_archive(REPOSITORY, processor, program, ui, said.output, said.system), flush=True)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd[:3]))} exited with status {error.returncode}.")
    if "functions" in said.only:
        print(cloudshell_script(REPOSITORY, said.output))
    print(write_digests(said.output))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="release", description="Builds the archives of a release.")
    parser.add_argument("--processors", nargs="+", choices=list(build.TRIPLES), default=list(build.TRIPLES))
    parser.add_argument("--profile", default="release", help="cargo's profile: release, or dev for a trial")
    parser.add_argument("--system", choices=list(build.SYSTEMS), default="linux", help="system of the program; macos has to be built on macOS, with its linker and SDK")
    parser.add_argument("--only", nargs="*", choices=["functions", "program"], default=["functions", "program"])
    parser.add_argument("--output", type=Path, default=REPOSITORY / "target/release-archive")
    return parser.parse_args()


if __name__ == "__main__":
    main()
