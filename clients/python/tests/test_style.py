"""Tests that the client is formatted, linted and typed, and that files stay short."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[1]
FILE_LINES_MAX = 400


@pytest.mark.parametrize("words", [("ruff", "check"), ("ruff", "format", "--check"), ("mypy",)], ids=" ".join)
def test_tool_has_nothing_to_say(words):
    done = subprocess.run([sys.executable, "-m", *words], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_files_stay_short():
    files = [file for part in ("src", "tests", "bench") for file in (FOLDER / part).rglob("*.py")]
    assert len(files) > 15
    assert [file.name for file in files if len(file.read_text().splitlines()) > FILE_LINES_MAX] == []
