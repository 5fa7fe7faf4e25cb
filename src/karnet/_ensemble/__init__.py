"""The search for networks that suit a table, and their average."""
