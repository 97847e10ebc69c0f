"""Traces of engines, from the record to tables, timelines and graphs; progress; reports of stalls."""
