"""The functions as they are deployed: their binaries behind a local Lambda, and the template that deploys them."""
