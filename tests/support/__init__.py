"""Starts and stops servers, and sends requests to them. Independent of what is tested."""
