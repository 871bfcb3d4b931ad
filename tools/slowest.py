"""Prints the ten slowest tests of a JUnit report: `slowest.py target/nextest/default/junit.xml`."""

import sys
from xml.etree import ElementTree

cases = [(float(case.get("time", 0)), case.get("classname"), case.get("name")) for case in ElementTree.parse(sys.argv[1]).iter("testcase")]
print("the ten slowest tests (s):")
for seconds, binary, name in sorted(cases, reverse=True)[:10]:
    print(f"{seconds:8.1f}  {binary}  {name}")
