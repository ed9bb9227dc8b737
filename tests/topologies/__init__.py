"""Small topologies that tests run by name."""
