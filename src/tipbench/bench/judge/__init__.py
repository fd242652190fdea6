"""Judge: candidates go out blind, scores come back and are checked before anything is written."""
