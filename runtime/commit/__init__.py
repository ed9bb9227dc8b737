"""The commit phase of one attempt: in the driver, or turn by turn on the executors."""
