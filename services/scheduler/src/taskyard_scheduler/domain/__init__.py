"""Pure scheduling policy: no I/O, no protobuf, no clock of its own."""
