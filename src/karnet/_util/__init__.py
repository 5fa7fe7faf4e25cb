"""Small tools for all rooms: types, checks, messages, files, optional packages and tables."""
