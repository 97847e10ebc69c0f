"""What ``benches/run.py`` is made of: programs, runners, jobs to time, targets, reports."""
