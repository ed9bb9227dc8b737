"""Mutants: deliberate faults of the protocol, each a small patch on a copy of the real code. All must be killed.

    python -m tests.mutants                    all of them, two at a time, and the unchanged code as a control
    python -m tests.mutants --only NAME        one of them

`catalogue` holds the mutants, `mutant` says what one is and makes the patched copy, `hunt` runs in that copy until a
law is broken, `witness` keeps the tracebacks of that history, `found` says whether what was found counts: a fault of
the protocol is killed, broken code is not. `hunters` runs many hunts side by side, `report` is the table. A mutant that
survives shows that the simulation or the model is too weak: those are to be made stronger, never the mutant. One that
is broken code shows nothing: it is to be mended.
"""
