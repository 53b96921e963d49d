"""The cage for untrusted code: one order (`CageSpec`), one way in (`enter`), one delivery note.

Standard library only, Linux only. `probe` says what this machine can give, `run_canaries` proves it
by attacks, and `kill_tree` with `sweep` end what ran inside.
"""

from hotloop.sandbox.cage import enter
from hotloop.sandbox.canary import breaches, require_sound, run_canaries
from hotloop.sandbox.credentials import readable_by_uid
from hotloop.sandbox.environment import scrubbed_environment
from hotloop.sandbox.namespaces import enter_namespaces
from hotloop.sandbox.output import OutputCollector, sanitise
from hotloop.sandbox.paths import CagePaths, default_paths
from hotloop.sandbox.policy import candidate_cage, lane_cage
from hotloop.sandbox.probe import Capabilities, probe
from hotloop.sandbox.processes import become_subreaper, kill_tree, living_below, sweep
from hotloop.sandbox.removal import remove_tree
from hotloop.sandbox.spec import CageReport, CageSpec, Limits, Tier

__all__ = [
    "CagePaths",
    "CageReport",
    "CageSpec",
    "Capabilities",
    "Limits",
    "OutputCollector",
    "Tier",
    "become_subreaper",
    "breaches",
    "candidate_cage",
    "default_paths",
    "enter",
    "enter_namespaces",
    "kill_tree",
    "lane_cage",
    "living_below",
    "probe",
    "readable_by_uid",
    "remove_tree",
    "require_sound",
    "run_canaries",
    "sanitise",
    "scrubbed_environment",
    "sweep",
]
