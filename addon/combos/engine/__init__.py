"""One request from arrival to end, sans-io: events in, commands out."""
