"""Stands in for a source archive's build backend: see build_meta.py."""
