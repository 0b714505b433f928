"""What the tests share."""

import os

import pytest
from fake_gate import FakeGate
from hosts import CHAPTERS, DRIVERS, HERE

# The tests of a host that this environment does not have run in the environment of that host.
collect_ignore = [f"test_{host}.py" for host in (*CHAPTERS.values(), "deerflow_factory") if host not in (*HERE, *DRIVERS)]


@pytest.fixture
def fake():
    gate = FakeGate()
    yield gate
    gate.close()


@pytest.fixture(scope="session")
def program():
    """The program that `TOLLGATE_BIN` names. The suite runs with `CI` set; there a missing program is a failure."""
    found = os.environ.get("TOLLGATE_BIN")
    if not found:
        if os.environ.get("CI"):
            pytest.fail("`TOLLGATE_BIN` names no program: build `tollgate` and set it")
        pytest.skip("`TOLLGATE_BIN` names no program")
    return found


@pytest.fixture
def fake_kafka():
    # Environments of one framework have no client of Kafka.
    from fake_kafka import FakeKafka

    gate = FakeKafka()
    yield gate
    gate.close()
