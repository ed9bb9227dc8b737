"""Programs as strangers write them: ported line by line from the shapes of public transactional topologies.

Each module is one program, and knows nothing of its test: no hook for it, no setting. What it talks to (a queue, a
broker, a database) is a stand-in of `services`, an object of the driver's process that cannot be copied. Failures come
from outside, by `failing`. `stormline check` finds nothing wrong with any of them.
"""
