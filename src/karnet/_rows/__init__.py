"""Blocks of rows and the reduction over them: in memory, in files, on a device, on a cluster."""
