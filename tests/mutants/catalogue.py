"""All mutants."""

from __future__ import annotations

from tests.mutants.faults_of_commit_queue import COMMIT_QUEUE
from tests.mutants.faults_of_commits import COMMITS
from tests.mutants.faults_of_coordination import COORDINATION
from tests.mutants.faults_of_groups import GROUPS
from tests.mutants.faults_of_input import INPUT
from tests.mutants.faults_of_ownership import OWNERSHIP_FAULTS
from tests.mutants.faults_of_phases import PHASES
from tests.mutants.faults_of_processing import PROCESSING
from tests.mutants.faults_of_sinks import SINKS
from tests.mutants.faults_of_state import STATE
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *COORDINATION,
    *COMMIT_QUEUE,
    *GROUPS,
    *SINKS,
    *PROCESSING,
    *COMMITS,
    *STATE,
    *OWNERSHIP_FAULTS,
    *PHASES,
    *INPUT,
)
