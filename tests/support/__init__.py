"""Starting servers and talking to them; knows nothing of what is being tested."""
