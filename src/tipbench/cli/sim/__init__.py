"""`tipbench sim`: one file a subcommand."""
