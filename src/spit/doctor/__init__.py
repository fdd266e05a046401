"""What ``spit doctor`` finds out: what is installed here, and whether spit answers here as it did when it was released.

``spit bench --check`` compares the partitions of the backends.
"""

from spit.doctor.answers import answer_faults
from spit.doctor.machine import describe_machine, machine_faults

__all__ = ["answer_faults", "describe_machine", "machine_faults"]
