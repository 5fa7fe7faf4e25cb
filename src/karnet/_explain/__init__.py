"""What a fitted average says about its training rows and columns."""
