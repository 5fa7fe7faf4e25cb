"""What can be believed, measured: numbers, bad input, faults and load."""
