"""The layers of a network, and the least-squares problem of each."""
