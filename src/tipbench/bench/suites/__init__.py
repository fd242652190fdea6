"""Loading and checking of suites: folders of data with scenarios, prompts, a rubric and an output contract."""
