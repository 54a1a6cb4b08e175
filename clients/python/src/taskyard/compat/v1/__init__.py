"""Generated stubs of protos/taskyard/compat/v1; `make generate` writes them."""
