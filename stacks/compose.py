"""Puts the stacks together: one stage, all regions, each region after the state that it reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from stacks import capabilities, naming
from stacks.archive_stack import ArchiveStack
from stacks.bundle import Bundle
from stacks.cold_stack import ColdStack
from stacks.hot_stack import HotEndpoint, HotStack
from stacks.keys_stack import KeysStack
from stacks.network_stack import Network, NetworkStack
from stacks.observability_stack import ObservabilityStack
from stacks.realtime_stack import RealtimeStack
from stacks.settings import LOCAL_ACCOUNT, Settings
from stacks.state_stack import StateStack


class _Region(NamedTuple):
    """What the archive has to do with in a region."""

    realtime: RealtimeStack
    cold: ColdStack


class Deployment(cdk.Stage):
    """Every stack of one environment: keys per region, then the table, then the regions.

    Stateful stacks (keys, state, cold) are apart from the others, which may be thrown away and made anew. Between
    stacks of different regions there are names only, and the dependencies that this class adds by hand.
    """

    def __init__(self, scope: cdk.App, *, settings: Settings, bundle: Bundle) -> None:
        super().__init__(scope, naming.stage_id(settings.stage))
        self._settings = settings
        self._can = capabilities.of(settings.target)
        keys = {
            region: KeysStack(self, f"Keys-{region}", settings=settings, **self._kept(region))
            for region in settings.regions
        }
        state = StateStack(self, "State", settings=settings, **self._kept(settings.home_region))
        for stack in keys.values():
            state.add_stack_dependency(stack, "a global table names the keys of all its regions")
        regions = {
            region: self._add_region(region, keys=keys[region], state=state, bundle=bundle)
            for region in settings.regions
        }
        home = regions[settings.home_region].realtime
        archive = ArchiveStack(
            self,
            "Archive",
            settings=settings,
            bundle=bundle,
            erase_queue=home.erase_queue,
            **self._replaceable(settings.home_region),
        )
        archive.add_stack_dependency(state, "its functions know the table by name")
        for region in regions.values():
            archive.add_stack_dependency(region.cold, "its archiver writes into every region's bucket")

    def _add_region(self, region: str, *, keys: KeysStack, state: StateStack, bundle: Bundle) -> _Region:
        settings = self._settings
        cold = ColdStack(self, f"Cold-{region}", settings=settings, key=keys.key, **self._kept(region))
        network = self._network(region)
        hot = self._hot(region, keys=keys, network=network)
        realtime = RealtimeStack(
            self,
            f"Realtime-{region}",
            settings=settings,
            hot=hot,
            network=network,
            bundle=bundle,
            **self._replaceable(region),
        )
        realtime.add_stack_dependency(state, "its functions know the table by name")
        realtime.add_stack_dependency(cold, "its functions know the bucket by name")
        ObservabilityStack(
            self,
            f"Observability-{region}",
            settings=settings,
            api_id=realtime.api_id,
            cache=hot.cache,
            **self._replaceable(region),
        )
        return _Region(realtime=realtime, cold=cold)

    def _network(self, region: str) -> Network | None:
        if self._settings.network == "public" or not self._can.vpc:
            return None
        return NetworkStack(self, f"Network-{region}", settings=self._settings, **self._replaceable(region)).network

    def _hot(self, region: str, *, keys: KeysStack, network: Network | None) -> HotEndpoint:
        address = self._settings.hot_address(region)
        if address is not None:
            return HotEndpoint(host=address[0], port=address[1])
        return HotStack(
            self,
            f"Hot-{region}",
            settings=self._settings,
            key=keys.key,
            network=network,
            **self._replaceable(region),
        ).endpoint

    def _kept(self, region: str) -> dict[str, Any]:
        return {**self._replaceable(region), "termination_protection": self._can.durable}

    def _replaceable(self, region: str) -> dict[str, Any]:
        account = LOCAL_ACCOUNT if self._settings.target == "local" else self._settings.account
        synthesizer = None if self._can.bootstrap_roles else cdk.CliCredentialsStackSynthesizer()
        return {"env": cdk.Environment(account=account, region=region), "synthesizer": synthesizer}


def compose(app: cdk.App, *, settings: Settings, bundle: Bundle) -> Deployment:
    """Add the deployment to an app; on `aws` its synthesis fails on what cdk-nag finds."""
    deployment = Deployment(app, settings=settings, bundle=bundle)
    if settings.target == "aws":
        cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return deployment
