"""Stand-ins for the services of other people's programs: each lives in this process, and a client cannot be pickled."""
