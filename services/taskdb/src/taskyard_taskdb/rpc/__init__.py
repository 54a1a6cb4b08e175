"""The handlers of taskdb's services, and the conversion between messages and stored values."""
