"""Small tools that know nothing of arrays or networks."""
