"""``spit doctor``: what is installed here, and whether spit answers here as it should."""

from typing import Any

from spit.cli.console import print_json, show, tell, waiting
from spit.cli.options import JsonOnly
from spit.errors import MissingExtra
from spit.wording import plural


def doctor(answering: JsonOnly) -> int:
    """Check this installation: versions, backends, devices and caches, and the default model's answers.

    The answers on three sample images are compared with recorded ones. Every fault is one line on stderr, and the exit
    code is then 1. On a new machine this also compiles the kernels, so that nothing waits for them later. A report of a
    fault should come with spit doctor --json. spit bench --check compares the backends.
    """
    from spit.doctor import answer_faults, describe_machine, machine_faults

    about = describe_machine()
    if not answering.as_json:
        _show(about)
    faults = [*machine_faults()]
    skipped = None
    with waiting("Checking answers; the first run compiles the kernels, about 10 s"):
        try:
            faults += answer_faults()
        except MissingExtra as error:
            skipped = str(error)
    if answering.as_json:
        print_json({**about, "faults": faults, "answers_skipped": skipped})
    else:
        show(f"answers not checked: {skipped}" if skipped else f"{plural(len(faults), 'fault')}")
    for fault in faults:
        tell(fault)
    return 1 if faults else 0


def _show(about: dict[str, Any]) -> None:
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items() if number)
    devices = ", ".join(" ".join([one["name"], one.get("model", "")]).strip() for one in about["devices"])
    show(f"spit {about['spit']['version']} in {about['spit']['folder']}\n"
         f"python {about['python']['version']}, {versions}\n"
         f"system {about['system']['name']}, {about['system']['cores']} cores\n"
         f"backends {', '.join(about['backends'])}; devices {devices}\n"
         f"caches {', '.join(f'{name} {path}' for name, path in about['caches'].items())}")
