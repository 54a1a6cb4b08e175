"""The rules of taskdb as pure code: values in, values out; the clock and the dice are arguments."""
