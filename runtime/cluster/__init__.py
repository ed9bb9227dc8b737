"""What a user starts: clusters, and the handle of a topology that runs on one."""
