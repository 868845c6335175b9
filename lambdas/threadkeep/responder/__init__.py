"""The responder: calls a model and streams its answer into a conversation. It is left out where it is not wanted."""
