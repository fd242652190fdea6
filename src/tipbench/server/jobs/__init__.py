"""Jobs: runs and simulations in the background, which outlive the server that started them."""
