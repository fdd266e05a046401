"""Is this tree as fast as another one, and are its answers the same to the last bit?

    git worktree add ../before c668f57
    python benchmarks/versions.py --other ../before/src

A process for each tree works on the same photos of scikit-image in turn, a case at a time, so that what else the
machine does reaches both. A figure is the median of each tree's CPU seconds, and the ratio the median of the ratios of
neighbouring turns: below 1, this tree is faster. Answers are compared by their SHA-256.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from provenance import arguments, launch, print_provenance

from spit.errors import SpitError

HERE = Path(__file__).parents[1] / "src"
IMPORT = "import numpy as np, spit; spit.superpixels(np.zeros((8, 8, 3), np.uint8), n=4)"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--other", type=Path, required=True, help="the folder src of the other tree")
    parser.add_argument("--rounds", type=int, default=31, help="turns of each tree")
    parser.add_argument("--threads", type=int, default=1, help="of torch and the kernels")
    args = parser.parse_args()
    if not (args.other / "spit").is_dir():
        raise SpitError(f"expected the folder src of another tree, got {args.other}; git worktree add makes one")
    print_provenance(f"photos of scikit-image, {args.threads} thread(s)")
    trees = [Tree(folder, args.threads) for folder in (HERE, args.other.resolve())]
    print(f"{'':40s}{'this, ms':>10s}{'other, ms':>11s}{'ratio':>8s}  answers")
    for case in trees[0].ask("cases"):
        turns = [[tree.ask(case) for tree in trees] for _ in range(args.rounds + 1)][1:]  # the first compiles
        seconds = np.array([[turn["seconds"] for turn in pair] for pair in turns])
        same = all(pair[0]["digest"] == pair[1]["digest"] for pair in turns)
        row(case, seconds, "equal" if same else "NOT EQUAL")
    for name, words in {"spit --help": ["-m", "spit.cli", "--help"], "import, spit.superpixels(array)": ["-c", IMPORT]
                        }.items():
        row(f"{name}, from the start", np.array([[start(tree.folder, words) for tree in trees] for _ in range(5)]), "")


def row(name: str, seconds: Any, answers: str) -> None:
    this, other = 1000 * np.median(seconds, axis=0)
    ratio = np.median(seconds[:, 0] / seconds[:, 1])
    print(f"{name:40s}{this:10.2f}{other:11.2f}{ratio:8.3f}  {answers}", flush=True)


def start(folder: Path, words: list[str]) -> float:
    """CPU seconds of a Python program."""
    program = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
               "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime)")
    done = subprocess.run([sys.executable, "-c", program, sys.executable, *words], env=environment(folder),
                          capture_output=True, text=True, check=True)
    return float(done.stdout)


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder)}


class Tree:
    """A process that imports spit from a folder and answers cases."""

    def __init__(self, folder: Path, threads: int) -> None:
        self.folder = folder
        command = [sys.executable, Path(__file__).parent / "workers/versions.py", folder, str(threads)]
        self.process = subprocess.Popen(command, env=environment(folder), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, case: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(case, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


if __name__ == "__main__":
    launch(main)
