"""One module for each law of docs/laws.md, which tries the law itself, directly and within a second or two.

No engine but the one of this process, no server: docs/laws.md says for each law what tries it further.
"""
