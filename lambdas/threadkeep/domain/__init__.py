"""What Threadkeep decides: no I/O, no clock of its own, no library of the outside but msgspec for its values."""
