"""Generated stubs of protos/taskyard/v1; `make generate` writes them."""
