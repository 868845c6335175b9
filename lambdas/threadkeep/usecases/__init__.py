"""One verb of the protocol each: authorize, decide with the domain, store, tell the viewers."""
