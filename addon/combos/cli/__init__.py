"""`ocx`, the command line."""
