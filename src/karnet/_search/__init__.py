"""One search: views, kernels, input metrics, scales and ridges of networks that suit a table."""
