"""The command line: thin. It reads flags, chooses the concrete parts and draws what comes back."""
