"""The rules of `stormline check`, one a module: each names what will not do what it seems."""
