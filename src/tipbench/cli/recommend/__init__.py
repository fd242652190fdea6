"""`tipbench recommend`: one module per subcommand."""
