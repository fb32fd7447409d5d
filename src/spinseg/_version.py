"""The version of this code, which stored results name; that of an installed package may be another."""

VERSION = "0.2.0"
