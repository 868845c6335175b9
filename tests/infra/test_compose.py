"""Which stacks there are, what protects them, what waits for what."""

from __future__ import annotations

import json

import pytest

from tests.infra.synthesized import Deployment

REGIONS = ("eu-central-1", "us-east-1")


def test_one_table_for_all_regions_and_the_rest_in_each(aws: Deployment) -> None:
    kinds = ("Keys", "Cold", "Hot", "Realtime", "Observability")
    assert set(aws.templates) == {"State"} | {f"{kind}-{region}" for kind in kinds for region in REGIONS}


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
        text = json.dumps(template)
        assert "Fn::ImportValue" not in text
        if name.endswith(region):
            other = next(other for other in REGIONS if other != region)
            assert other not in text, name


def test_all_of_a_stages_names_carry_the_stage(aws: Deployment) -> None:
    assert {path.name.startswith("Threadkeepprod") for path in aws.paths} == {True}
