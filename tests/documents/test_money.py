"""Tests that each amount of money in a document is one of the figures of `tools/cost`, which
`docs/reference/cost.md` is made from.

A document with amounts is listed with the sentences that contain them, in which figures are written
in braces. An amount that is not part of a listed sentence fails the test.
"""

import re
from functools import cache
from pathlib import Path

import pytest

from tools.cost.figures import figures
from tools.cost.write import PAGE, REPOSITORY, read

#: Documents that describe the past, in which amounts are not updated: decisions and the changelog.
_DATED = {PAGE, REPOSITORY / "CHANGELOG.md", *(REPOSITORY / "docs" / "adr").glob("*.md")}
_DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "bench/**/*.md", "clients/*/*.md", "docs/**/*.md", "shared/**/*.md", "tests/**/*.md", "examples/*.md")
    for path in REPOSITORY.glob(pattern)
    if path not in _DATED
)
_AMOUNT = re.compile(r"\$\d[\d,]*(?:\.\d+)?|\b[\w.]+ cents?\b|\b\d[\d,.]* (?:US )?dollars?\b|\bUSD ?\d[\d,.]*")

_SCALE = "on demand in us-east-1: {price: writes} for a million write units, {price: reads} for read units, {gateway and Lambda, 12 ms} for calls by API Gateway"
_SENTENCES = {
    "README.md": [
        "A stack for ten people costs about {10: ours} a month, for a hundred {100: ours}, and for a thousand {1000: ours};",
        "an always-on server is estimated at {10: server}, {100: server} and {1000: server} for the same numbers of people.",
        "Without any request, the stack costs {idle} a month, plus storage and backups.",
    ],
    "docs/reference/capacity.md": [
        "on demand in us-east-1, {price: writes} for write units and {price: reads} for read units",
        "the requests of API Gateway ({price: gateway} a million, counted by 512 KB) and of Lambda ({price: invocations}), and Lambda's time;",
    ],
    "docs/reference/capacity-artifacts.md": [
        "`POST` requests cost {price: bucket writes}, and `GET` and `HEAD` requests {price: bucket reads}; `DELETE` is free",
    ],
    # The amounts computed from units are checked below.
    "docs/guide/move.md": ["each 4 KB takes a read unit ({price: reads} per million)"],
    "docs/guide/deploy.md": ["who exhausts the default rate for a month causes costs of {refused}."],
    "docs/guide/security.md": ["if a stranger sends as many for a month, they cost {refused} ("],
    # The amounts computed from simulated units are checked below.
    "docs/measured/scale.md": [_SCALE],
}


@cache
def _figures() -> dict[str, str]:
    return figures(*read())


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _unlisted(text: str, sentences: list[str], known: dict[str, str]) -> list[str]:
    """Describes the errors in a document: sentences that it does not contain with the current
    figures, and amounts that are not in any sentence.
    """
    text, wrong = _flat(text), []
    for sentence in sentences:
        told = re.sub(r"\{([^}]+)\}", lambda found: known[found[1]], sentence)
        # Documents may omit the cents of a round price.
        for form in (told, re.sub(r"(\$\d+)\.00\b", r"\1", told)):
            if form in text:
                text = text.replace(form, "")
                break
        else:
            wrong.append(f"not said: {told}")
    return wrong + [f"in no listed sentence: …{text[max(0, found.start() - 60) : found.end() + 20]}…" for found in _AMOUNT.finditer(text)]


def _simulated(page: str) -> str:
    """Removes the amounts from a page about load that follow from its own units and the prices in
    its own sentence.
    """
    known = _figures()
    writes, reads, call = (float(known[name].strip("$")) for name in ("price: writes", "price: reads", "gateway and Lambda, 12 ms"))
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        hour = re.search(r"^\| all \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", section, re.MULTILINE)
        if not hour:
            continue
        calls, written, read_, table, gateway = map(float, hour.groups())
        # The units in the table have three decimal places.
        assert table == pytest.approx(written * writes + read_ * reads, abs=0.002)
        assert gateway == pytest.approx(calls * call, abs=0.002)
        name = section.partition("\n")[0]
        page = _without(page, rf"^(\| {re.escape(name)} \|.*\| )\$([\d.,]+)( \|)$", table + gateway)
        day = re.search(r"^A day: .*$", section, re.MULTILINE)
        assert day
        amounts = [float(amount.replace(",", "")) for amount in re.findall(r"\$([\d,]*\d(?:\.\d+)?)", day[0])]
        traces = re.search(r"([\d.]+) million traces", day[0])
        expected = [table * 24, *([table * 24 / float(traces[1])] if traces else []), gateway * 24]
        # The hour is rounded to a tenth of a cent, and the day to a cent.
        assert amounts == [pytest.approx(value, rel=0.006, abs=24 * 0.0005 + 0.005) for value in expected], day[0]
        page = page.replace(day[0], "")
    return page


def _without(page: str, pattern: str, expected: float) -> str:
    found = re.search(pattern, page, re.MULTILINE)
    assert found, pattern
    assert float(found[2].replace(",", "")) == pytest.approx(expected, rel=0.006)
    return page.replace(found[0], found[1] + found[3])


def _moved(page: str) -> str:
    """Removes the amounts from the guide to moving data that follow from formulas with known prices."""
    prices = {amount for name, amount in _figures().items() if name.startswith("price: ")}
    amounts = []
    for line, formula, amount in re.findall(r"^(\| [^|]+ \| ([^|]*\$[^|]*) \| \$([\d.]+) \|)$", page, re.MULTILINE):
        assert set(re.findall(r"\$[\d.]+", formula)) <= prices, formula
        sum_ = re.sub(r"per (?=\d)", "÷ ", formula).translate({ord("×"): "*", ord("÷"): "/", ord(","): None})
        assert float(amount) == pytest.approx(eval(re.sub(r"[^\d.+*/()]", "", sum_)), abs=0.005), formula
        amounts.append(float(amount))
        page = page.replace(line, "")
    *once, monthly = amounts
    for total in (f"costs **${sum(once):.0f} at most**", f"and then ${monthly:.0f} a month"):
        assert total in page, total
        page = page.replace(total, "")
    return page


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_amounts_are_those_of_the_page_about_costs(document: Path) -> None:
    name = str(document.relative_to(REPOSITORY))
    text = document.read_text("utf-8")
    if name == "docs/measured/scale.md":
        text = _simulated(text)
    elif name == "docs/guide/move.md":
        text = _moved(text)
    assert not _unlisted(text, _SENTENCES.get(name, []), _figures())


def test_the_listed_documents_are_there() -> None:
    assert not _SENTENCES.keys() - {str(document.relative_to(REPOSITORY)) for document in _DOCUMENTS}


def test_figures_of_sentences_are_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    for sentences in _SENTENCES.values():
        for name in re.findall(r"\{([^}]+)\}", " ".join(sentences)):
            # This figure is not on the page, which computes the time of each call separately.
            assert name == "gateway and Lambda, 12 ms" or _figures()[name] in page, name


def test_a_wrong_amount_is_found() -> None:
    known = {"price: one": "$1.00", "two": "$2.50"}
    assert not _unlisted("It costs $1.00\nin all, or $2.50.", ["It costs {price: one} in all, or {two}."], known)
    assert not _unlisted("It costs $1 in all.", ["It costs {price: one} in all."], known)
    assert _unlisted("It costs $1.10 in all.", ["It costs {price: one} in all."], known) == [
        "not said: It costs $1.00 in all.",
        "in no listed sentence: …It costs $1.10 in all.…",
    ]
    for amount in ("$3", "$1,250", "ten cents", "a cent", "5 dollars", "USD 7"):
        assert len(_unlisted(f"And {amount} more.", [], known)) == 1, amount
    assert not _unlisted("Recently, percent and `$default`.", [], known)
