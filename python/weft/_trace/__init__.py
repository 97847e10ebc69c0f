"""Traces of what an engine did, from its record to tables, timelines and graphs; progress; reports of stalls."""
