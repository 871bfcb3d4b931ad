"""What a release passes on."""
