"""What a process stands in: time, threads, disks. Knows nothing of topologies."""
