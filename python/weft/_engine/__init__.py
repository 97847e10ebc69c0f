"""The engine's face in Python: tasks, waits, the default engine, exit, devices as labels."""
