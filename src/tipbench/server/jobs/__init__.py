"""Where runs happen: jobs that go on without whoever started them."""
