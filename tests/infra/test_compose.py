"""Which stacks there are, what protects them, what waits for what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.infra.synthesized import Deployment

REGIONS = ("eu-central-1", "us-east-1")


def test_one_table_for_all_regions_and_the_rest_in_each(aws: Deployment) -> None:
    kinds = ("Keys", "Cold", "Hot", "Realtime", "Observability")
    assert set(aws.templates) == {"State", "Archive"} | {f"{kind}-{region}" for kind in kinds for region in REGIONS}


def test_what_keeps_data_is_protected_from_termination(aws: Deployment) -> None:
    assert aws.protected == {"State"} | {f"{kind}-{region}" for kind in ("Keys", "Cold") for region in REGIONS}


def test_the_table_waits_for_every_regions_key(aws: Deployment) -> None:
    assert aws.dependencies["State"] == {f"Keys-{region}" for region in REGIONS}


@pytest.mark.parametrize("region", REGIONS)
def test_a_region_waits_for_what_it_knows_by_name(aws: Deployment, region: str) -> None:
    assert aws.dependencies[f"Realtime-{region}"] == {"State", f"Cold-{region}", f"Hot-{region}"}
    assert aws.dependencies[f"Cold-{region}"] == {f"Keys-{region}"}
    assert aws.dependencies[f"Hot-{region}"] == {f"Keys-{region}"}


@pytest.mark.parametrize("region", REGIONS)
def test_no_reference_crosses_regions(aws: Deployment, region: str) -> None:
    for name, template in aws.templates.items():
        assert "Fn::ImportValue" not in json.dumps(template)
        if name.endswith(region) or (name in {"State", "Archive"} and region == REGIONS[0]):
            assert {output["Region"] for output in outputs(template) if "Region" in output} <= {region}, name


def outputs(template: Any) -> Iterator[dict[str, Any]]:
    """Every reference to another stack's output."""
    if isinstance(template, list):
        for item in template:
            yield from outputs(item)
    if isinstance(template, dict):
        for name, value in template.items():
            if name == "Fn::GetStackOutput":
                yield value
            else:
                yield from outputs(value)


def test_the_archive_knows_the_queue_of_its_own_regions_eraser(aws: Deployment) -> None:
    assert {output["StackName"] for output in outputs(aws.templates["Archive"])} == {
        f"Threadkeep-prod-Realtime-{REGIONS[0]}"
    }


def test_all_of_a_stages_names_carry_the_stage(aws: Deployment) -> None:
    assert {path.name.startswith("Threadkeepprod") for path in aws.paths} == {True}
