"""Two regions over one global table, in one process and by one clock."""
