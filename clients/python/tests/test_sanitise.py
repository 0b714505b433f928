"""Runs the cases of suppressed responses that Rust's tests run too, and compares the places with Rust's tables."""

import copy
import json
import pathlib
import re

import pytest

from tollgate import sanitise_message, sanitise_response
from tollgate._core.places import MESSAGE_CALLS, RESPONSE_CALLS

TOP = pathlib.Path(__file__).resolve().parents[3]
CASES = [json.loads(line) for line in (TOP / "tests/sanitiser_cases.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case):
    before = copy.deepcopy(case["in"])
    rewrite = sanitise_message if case["as"] == "message" else sanitise_response
    assert rewrite(case["in"], case["safety"]) == case["out"]
    assert case["in"] == before


def test_every_place_of_a_call_in_rust_is_known_here():
    folder = TOP / "crates/core/src/decide/safety/reading/readers"
    known = {"".join("[]" if step == 0 else f".{step}" for step in at.path).strip(".") for at in RESPONSE_CALLS + MESSAGE_CALLS}
    seen = 0
    for file in folder.glob("*.rs"):
        for block in re.findall(r"calls: &\[(.*?)\],\n    texts", file.read_text(), re.DOTALL):
            for path in re.findall(r'(?:(?<!Some)[(]|path: )"((?:[^"\\]|\\.)*?[\]\w])"(?!, (?:None|Some))', block):
                seen += 1
                assert path.replace('\\"', "") in known, f"{file.name}: {path}"
    assert seen > 25
