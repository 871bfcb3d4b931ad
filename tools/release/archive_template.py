"""The template of an archive: the committed one, but for the places of the code and the processor."""

import re


def of_archive(template: str, processor: str) -> str:
    """Names archives in place of sources, and lets SAM build nothing.

    It goes by lines, so that comments, order and short forms stay as they are.
    """
    template = _replaced(r"^    Metadata:\n      BuildMethod: rust-cargolambda\n", "", template)
    template = _replaced(r"^      CodeUri: functions/([a-z-]+)$", r"      CodeUri: functions/\1.zip", template)
    template = _replaced(r"^      ContentUri: ui$", "      ContentUri: ui.zip", template)
    template = _replaced(r"^    Architectures: \[arm64\]$", f"    Architectures: [{processor}]", template)
    if "BuildMethod" in template:
        raise ValueError("the template has code that is built in a way that is not known here")
    return template


def _replaced(pattern: str, by: str, template: str) -> str:
    template, count = re.subn(pattern, by, template, flags=re.MULTILINE)
    if not count:
        raise ValueError(f"the template has no {pattern}")
    return template
