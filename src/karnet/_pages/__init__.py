"""HTML reports: the page, its tables and figures, and the machine that made them."""
