"""The edge: API Gateway events and frames in, frames out."""
