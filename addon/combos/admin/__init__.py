"""What an operator touches: the configuration file, the management API, ledger and metrics."""
