"""The template of an archive: the committed template with other code locations and another
processor.
"""

import re


def of_archive(template: str, processor: str) -> str:
    """Replaces sources by archives, and makes SAM build nothing.

    Works by line, so that comments, order and short forms are preserved.
    """
    template = _replaced(r"^    Metadata:\n      BuildMethod: rust-cargolambda\n", "", template)
    template = _replaced(r"^      CodeUri: functions/([a-z-]+)$", r"      CodeUri: functions/\1.zip", template)
    template = _replaced(r"^      ContentUri: ui$", "      ContentUri: ui.zip", template)
    template = _replaced(r"^    Architectures: \[arm64\]$", f"    Architectures: [{processor}]", template)
    if "BuildMethod" in template:
        raise ValueError("the template has code with an unsupported build method")
    return template


def _replaced(pattern: str, by: str, template: str) -> str:
    template, count = re.subn(pattern, by, template, flags=re.MULTILINE)
    if not count:
        raise ValueError(f"the template has no {pattern}")
    return template
