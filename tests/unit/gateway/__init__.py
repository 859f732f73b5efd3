"""Tests of the gateway's parts."""
