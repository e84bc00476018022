"""Names and shapes of other packages, over our engine: import cogpu.compat.xrspatial."""
