"""Generated stubs of protos/taskyard/compat; `make generate` writes them."""
