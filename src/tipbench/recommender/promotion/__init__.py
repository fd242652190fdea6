"""Which policy is live, as a history of promotions and rollbacks, and the evidence for them."""
