"""Segments as a table that Athena reads, where they lie."""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_glue as glue
from constructs import Construct

from threadkeep import schema

TABLE_NAME: Final = "messages"

COLUMNS: Final = {
    "id": "string",
    "conversation": "string",
    "parent": "string",
    "role": "string",
    "status": "string",
    "model": "string",
    "reply": "string",
    "tokens": "struct<count:bigint,estimated:boolean>",
    "bytes": "bigint",
    "body": "string",
    "epoch": "bigint",
    "parts": "string",
    "metadata": "string",
    "usage": "string",
    "error": "string",
}
"""A line of a segment. JSON of clients' own is of any shape, and so its text: ``json_extract(parts, '$[0].text')``.
When a message was created is the time in its id: docs/runbook.md has the SQL."""


class SegmentTable(Construct):
    """A Glue database with one table; it costs nothing until somebody asks it.

    A tenant's messages are found by its name alone (as keys have it: letters, digits, ``_``, ``-`` and ``~`` as they
    are, all else as ``%XX``), without a list of partitions to keep: every query says ``WHERE tenant = '…'`` (Athena
    user guide, "Supported types for partition projection", read 2026-11-29). Segments may overlap: keep one row of
    each id. Athena engine 3 reads JSON in Zstandard (user guide, "Use Hive table compression", read 2026-11-29).
    """

    def __init__(self, scope: Construct, construct_id: str, *, account: str, database: str, bucket: str) -> None:
        super().__init__(scope, construct_id)
        segments = f"s3://{bucket}/{schema.SEGMENTS_PREFIX}"
        made = glue.CfnDatabase(
            self,
            "Database",
            catalog_id=account,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=database, description="Threadkeep: archived conversations in this region"
            ),
        )
        table = glue.CfnTable(
            self,
            "Table",
            catalog_id=account,
            database_name=database,
            table_input=glue.CfnTable.TableInputProperty(
                name=TABLE_NAME,
                description="One message a row; name a tenant, and keep one row of each id",
                table_type="EXTERNAL_TABLE",
                partition_keys=[glue.CfnTable.ColumnProperty(name="tenant", type="string")],
                parameters={
                    "EXTERNAL": "TRUE",
                    "classification": "json",
                    "compressionType": "zstd",
                    "projection.enabled": "true",
                    "projection.tenant.type": "injected",
                    "storage.location.template": segments + "${tenant}/",
                },
                storage_descriptor=glue.CfnTable.StorageDescriptorProperty(
                    columns=[glue.CfnTable.ColumnProperty(name=name, type=type_) for name, type_ in COLUMNS.items()],
                    location=segments,
                    compressed=True,
                    input_format="org.apache.hadoop.mapred.TextInputFormat",
                    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
                    serde_info=glue.CfnTable.SerdeInfoProperty(
                        serialization_library="org.openx.data.jsonserde.JsonSerDe",
                        # Clients may have names in their JSON that differ by case alone; without this they would meet,
                        # and the row be refused (Athena user guide, "OpenX JSON SerDe", read 2026-11-29).
                        parameters={"case.insensitive": "false"},
                    ),
                ),
            ),
        )
        table.add_resource_dependency(made)
