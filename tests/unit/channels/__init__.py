"""Tests of the rooms between platforms and sessions."""
