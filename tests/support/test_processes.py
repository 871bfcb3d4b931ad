"""The port of a program that cannot choose one itself."""

import socket

import pytest

from tests.support.processes import PortTaken, start_on_own_port


def test_a_port_that_somebody_has_is_left_alone():
    first = start_on_own_port(lambda port: port)
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", first))
        assert start_on_own_port(lambda port: port) != first


def test_a_port_that_is_taken_at_the_last_moment_is_given_up():
    tried = []

    def start(port: int) -> int:
        tried.append(port)
        if len(tried) == 1:
            raise PortTaken("somebody was faster")
        return port

    assert start_on_own_port(start) == tried[1] != tried[0]


def test_it_is_not_tried_for_ever():
    def start(port: int) -> int:
        raise PortTaken("never free")

    with pytest.raises(PortTaken, match="never free"):
        start_on_own_port(start)
