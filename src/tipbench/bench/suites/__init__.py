"""A suite is a folder of data: scenarios, prompts, a rubric and an output contract. Here it is loaded and checked."""
