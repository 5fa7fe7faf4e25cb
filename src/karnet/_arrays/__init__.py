"""Arrays of any library: their functions, devices, linear algebra and threads."""
