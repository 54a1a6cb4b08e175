"""Generated requests against the whole suite; run by hand and in CI, not with the tests."""
