"""``spit doctor``: what is installed here, and whether answers repeat exactly on this machine."""

from dataclasses import asdict
from typing import Any

from spit.cli.console import print_json, show, tell, waiting
from spit.cli.options import JsonOnly


def doctor(answering: JsonOnly) -> int:
    """Check this installation: versions, backends, devices, caches, disk and memory, and that answers repeat exactly.

    Partitions are compared across backends and runs, logits across batches, and the embedded models' answers with
    recorded ones. Every fault is one line on stderr, and the exit code is then 1. A report of a fault should come with
    spit doctor --json.
    """
    from spit.doctor import describe_machine, examine

    about = describe_machine()
    if not answering.as_json:
        _show(about)
    with waiting("Checking; the first run compiles the kernels, 15-30 s") as say:
        findings = list(examine(say))
    faults = [fault for finding in findings for fault in finding.faults]
    if answering.as_json:
        print_json({**about, "checks": [asdict(finding) for finding in findings], "faults": faults})
    else:
        for finding in findings:
            state = f"not checked: {finding.skipped}" if finding.skipped else "FAULT" if finding.faults else "good"
            show(f"{finding.check}: {state} ({finding.seconds:.1f} s)")
    for fault in faults:
        tell(fault)
    return 1 if faults else 0


def _show(about: dict[str, Any]) -> None:
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items() if number)
    devices = ", ".join(" ".join([one["name"], one.get("model", "")]).strip() for one in about["devices"])
    free = about["free"]
    memory = "unknown" if free["memory_bytes"] is None else f"{free['memory_bytes'] / 2**30:.1f} GiB"
    show(f"spit {about['spit']['version']} in {about['spit']['folder']}\n"
         f"python {about['python']['version']}, {versions}\n"
         f"system {about['system']['name']}, {about['system']['cores']} cores\n"
         f"backends {', '.join(about['backends'])}; devices {devices}\n"
         f"caches {', '.join(f'{name} {path}' for name, path in about['caches'].items())}\n"
         f"free disk {free['disk_bytes'] / 2**30:.1f} GiB, memory {memory}")
