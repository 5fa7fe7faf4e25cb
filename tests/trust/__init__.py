"""Short forms of the programs in `trust`."""
