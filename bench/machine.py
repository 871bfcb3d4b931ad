"""Descriptions of the machine and the programs for pages with measurements."""

import os
import platform
import re
import subprocess
from pathlib import Path


def described() -> str:
    """Describes the processor, cores, memory and operating system."""
    system = f"{platform.system()} {platform.release().partition('-')[0]} {platform.machine()}"
    return f"{_cpu()}, {os.cpu_count()} cores, {_memory()}, {system}"


def version_of(program: Path) -> str:
    """Returns the name and version of this project's program."""
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=60)
    # With the project's name, which may differ from the file's name.
    return f"mlflow-serverless {shown.stdout.split()[-1]}"


def _cpu() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", _text_of("/proc/cpuinfo"), re.MULTILINE)
    return found[1].strip() if found else platform.processor() or "unknown CPU"


def _memory() -> str:
    found = re.search(r"^MemTotal:\s*(\d+) kB", _text_of("/proc/meminfo"), re.MULTILINE)
    return f"{int(found[1]) / 2**20:.0f} GiB of memory" if found else "unknown memory"


def _text_of(path: str) -> str:
    return Path(path).read_text() if Path(path).is_file() else ""
