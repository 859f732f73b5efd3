"""Benchmarks: two things compared in one run, CPU counted, ratios kept. Never a timed test."""
