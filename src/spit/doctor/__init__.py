"""What ``spit doctor`` finds out: what is installed here, and whether answers repeat exactly on this machine."""

from spit.doctor.checks import CHECKS, Finding, examine
from spit.doctor.machine import describe_machine

__all__ = ["CHECKS", "Finding", "describe_machine", "examine"]
