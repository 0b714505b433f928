"""What the tests share."""

import pytest
from fake_gate import FakeGate


@pytest.fixture
def fake():
    gate = FakeGate()
    yield gate
    gate.close()
