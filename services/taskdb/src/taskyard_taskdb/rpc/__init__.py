"""The handlers of taskdb's services, one module each, and the conversion between messages and stored values."""
