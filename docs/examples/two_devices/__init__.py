"""The parts of ``digits.py``: one network, trained on two devices."""
