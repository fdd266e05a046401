"""schemathesis against the OpenAPI document: a small budget here, ``benchmarks/serve.py --cases 5000`` at large."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "serve.py"


def test_answers_are_as_documented(tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    ended = subprocess.run([sys.executable, str(BENCHMARK), "--cases", "100", "--phases", "examples,fuzzing",
                            "--device", "cpu"], cwd=tmp_path, capture_output=True, text=True, check=False,
                           env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = re.search(r"answers by status: \{(.*)\}", ended.stdout)
    assert found
    statuses = dict(re.findall(r"'(\d+)': (\d+)", found[1]))
    assert "500" not in statuses
    assert int(statuses["200"]) > 20
