#!/bin/sh
# Checks style, format, types, which room imports which, and public docstrings, with the programs of the folder given:
# of the environment's bin. All are run, whatever one of them says.
set -u

bin=$1
failed=0
for command in "python -m ruff check ." "python -m ruff format --check ." "python -m mypy" lint-imports \
    "python -m docs.public_docstrings"; do
    # Not quoted: a command is split at its spaces.
    "$bin"/$command || failed=1
done
exit $failed
