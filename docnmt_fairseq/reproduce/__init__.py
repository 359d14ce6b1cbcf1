"""Published tables and figures, each one file of ``tables/``, and what runs them again."""
