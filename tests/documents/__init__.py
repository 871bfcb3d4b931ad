"""What the documents say, held against what makes it so."""
