"""What `make deny` refuses."""
