"""What the scheduler serves: one module per service."""
