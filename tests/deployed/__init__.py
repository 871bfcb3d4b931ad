"""The stack as `sam deploy` makes it, in an emulator of AWS."""
