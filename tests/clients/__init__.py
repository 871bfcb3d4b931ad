"""The packages in `clients/`, with the stock client and a strict verifier of signatures in the gateway's place."""
