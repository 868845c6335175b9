"""The ports of `threadkeep.ports`, on Valkey, DynamoDB, S3 and the gateway's @connections; and in memory."""
