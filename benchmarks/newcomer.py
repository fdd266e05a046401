"""What a newcomer waits for: a fresh clone, then ``make demo`` and ``make test``.

    python benchmarks/newcomer.py

Nothing is installed by hand. Bars: the demo under 5 minutes with its set-up, the tests under 15 on 2
cores.
"""

import subprocess
import tempfile
import time
from pathlib import Path

from provenance import ROOT, arguments, launch, print_provenance


def main() -> None:
    args = arguments(__doc__).parse_args()
    print_provenance("the committed tree, cloned")
    with tempfile.TemporaryDirectory(prefix="spit-newcomer-") as folder:
        clone = Path(folder) / "spit"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        if args.shared.is_dir():
            (Path(folder) / "shared").symlink_to(args.shared.resolve())
        for target, bar in (("demo", 5), ("test", 15)):
            start = time.perf_counter()
            done = subprocess.run(["make", target], cwd=clone, capture_output=True, text=True)
            minutes = (time.perf_counter() - start) / 60
            last = (done.stdout.strip().splitlines() or [""])[-1]
            verdict = "within" if done.returncode == 0 and minutes <= bar else "NOT within"
            print(f"make {target}: exit {done.returncode}, {minutes:.1f} minutes ({verdict} {bar}); {last}", flush=True)
            if done.returncode != 0:
                raise SystemExit(done.stdout[-4000:] + done.stderr[-4000:])


if __name__ == "__main__":
    launch(main)
