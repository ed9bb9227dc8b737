"""What all tests share: how the JVMs are started that Spark starts for them."""

from __future__ import annotations

import os

from tests.services.jvm import environment

for variable, options in environment().items():
    os.environ[variable] = f"{options} {os.environ.get(variable, '')}".strip()
