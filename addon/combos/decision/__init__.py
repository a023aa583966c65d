"""Decisions of combos with strategy jev: what is asked, of whom, and what an answer is worth. Pure."""
