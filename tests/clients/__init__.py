"""Tests of the packages in `clients/`, with the stock client and a strict verifier of signatures in
place of API Gateway.
"""
