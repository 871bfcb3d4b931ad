"""Tests of the stack in an emulator of AWS, deployed with `sam deploy`."""
