"""Pure rules: names, configuration, registry, failure table, cooldowns, selection. No I/O, no clock, no randomness."""
