"""One module an area; `smoke.registry` finds them by being here."""
