"""Random requests about label schemas, review queues, issues, MCP servers and skills.

  python -m tests.compare.random_requests --count 500 --seed 7

compares this server with MLflow 3.18.0. A sequence of requests is determined by its domain and its
seed. It contains valid requests, and requests with one mistake.
"""

import argparse
import random
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.compare.random_domain import Requests
from tests.compare.random_excuses import Excuses
from tests.compare.random_reviews import Issues, LabelSchemas, ReviewQueues
from tests.compare.random_servers import Servers
from tests.compare.random_skills import Skills
from tests.compare.runner import Runner
from tests.support.http import Side
from tests.support.next_release import form_reader, next_release
from tests.support.pair import FIRST_EXPERIMENT_OF_REFERENCE, FIRST_EXPERIMENT_OF_SUBJECT
from tests.support.servers import NextStockMlflow, start_subject

DOMAINS: list[type[Requests]] = [LabelSchemas, ReviewQueues, Issues, Servers, Skills]
_DIFFERENCES_PRINTED = 20


def compare_requests(
    reference: Side, subject: Side, domain: type[Requests], count: int, seed: int
) -> tuple[list[str], Runner, Excuses]:
    """Sends both sides the same random requests about a domain."""
    requests = domain(random.Random(f"{domain.domain} {seed}"))
    # No seed's text is a prefix of another's. The names of servers and skills begin with the space.
    variables = {"unique": f"-{domain.domain}-{seed}-", "space": f"s{seed}s", **requests.variables()}
    excuses = Excuses()
    runner = Runner(reference, subject, variables=variables, excuse=excuses.excuse)
    reports = [report for step in requests.begin() for report in runner.play(step)]
    if set(runner.statuses) - {200}:
        raise ValueError(f"{domain.domain}: a request before the random ones has failed: {runner.statuses}")
    for step in (*requests.random_steps(count), *requests.end()):
        reports += runner.play(step)
    return reports, runner, excuses


def main() -> int:
    """Starts two servers, compares their responses, and prints the differences. Returns 1 if there
    are any.
    """
    arguments = argparse.ArgumentParser(description="Compare random requests with MLflow 3.18.0.")
    arguments.add_argument("--count", type=int, default=500, help="requests per domain (500)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--domain", choices=[domain.domain for domain in DOMAINS], help="only this domain")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stops:
        environment = {"PYTHONPATH": f"{next_release()}:{form_reader()}"}
        reference = NextStockMlflow(Path(directory, "reference"), next_release(), FIRST_EXPERIMENT_OF_REFERENCE, environment)
        stops.callback(reference.stop)
        subject = start_subject(Path(directory, "subject"), in_memory=True, first_experiment_id=FIRST_EXPERIMENT_OF_SUBJECT)
        stops.callback(subject.stop)
        sides = Side("reference", reference.url), Side("subject", subject.url)
        outcomes = [
            (domain.domain, *compare_requests(*sides, domain, options.count, options.seed))
            for domain in DOMAINS
            if options.domain in (None, domain.domain)
        ]
    reports = [f"{domain} / {report}" for domain, found, *_ in outcomes for report in found]
    print("\n\n".join(reports[:_DIFFERENCES_PRINTED]))
    for domain, found, runner, excuses in outcomes:
        print(
            f"{domain}: {runner.requests} requests, {len(found)} differ, {excuses.excused_steps} differences are accepted,"
            f" statuses {dict(runner.statuses)}"
        )
    return 1 if reports else 0


if __name__ == "__main__":
    sys.exit(main())
