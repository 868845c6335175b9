"""Entry points of the Lambda functions, one module a bulkhead."""
