"""`tipbench sim`: one module per subcommand."""
