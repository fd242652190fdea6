"""`tipbench recommend`: one file a subcommand."""
