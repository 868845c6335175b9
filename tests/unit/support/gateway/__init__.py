"""The fault gateway's own tests: a stand-in that enforces nothing would vouch for everything."""
