"""What tests of several packages share; imported by its path from the checkout."""
