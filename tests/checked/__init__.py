"""Programs for `stormline check`, in the style of strangers: the wrong ones mark their mistakes with `# ! RULE`."""
