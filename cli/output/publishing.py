"""Carry out a recipe: read, charge, build, save, sign and export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.file_endings import check_release_name

from ..options.ledger import account_of
from ..options.reading import local_files
from ..options.tallies import tallies_in, write_build_tally
from ..output.private_report import make_observer
from ..output.request_warnings import warn_of_ids, warn_of_request
from ..output.terminal import print_success, show_stage

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.ingest.engine import Engine
    from psd.ingest.partial_tally import PartialTally
    from psd.ingest.tally import Tally
    from psd.ledger.account import Account
    from psd.privacy.loss import Loss
    from psd.publish.recipe import PlannedRelease, PrivateInputs, Recipe
    from psd.publish.request import BuildRequest

__all__ = ["print_requests", "run_recipe", "save_recipe"]


def print_requests(recipe: Recipe) -> None:
    """Print the requests of a recipe as TOML; opens no input, no ledger and no key."""
    from psd._util.toml_text import toml_text

    tables = []
    for release in recipe.releases:
        check_release_name(release.output)
        request = release.build_request()
        warn_of_request(request)
        if request.domain is None:
            click.echo(
                f"# epsilon {request.epsilon:f}; bounds, unit and slices are those of the tallies"
            )
        else:
            click.echo(f"# {request.guarantee_text}")
        tables.append(release.to_table(request))
    click.echo(toml_text({"release": tables[0] if len(tables) == 1 else tables}), nl=False)


def save_recipe(recipe: Recipe, path: str, *, overwrite: bool) -> None:
    """Write a recipe; only its owner may read it, because it names the inputs."""
    from psd._util.atomic_write import check_free, write_file

    check_free(path, overwrite=overwrite)
    text = recipe.to_toml(folder=Path(path).parent)
    write_file(path, text.encode(), overwrite=overwrite, mode=0o600)
    print_success(f"wrote {path} (PRIVATE)")


def run_recipe(recipe: Recipe, *, overwrite: bool) -> None:
    """Build, save, sign and export the releases of a recipe, after a check of all of them."""
    from psd._util.atomic_write import check_targets
    from psd.publish.fields import public_files
    from psd.publish.inputs import inputs_and_engine
    from psd.regions.inputs import refuse_record_files

    private, releases = recipe.private, recipe.releases
    if not private.inputs and (private.table is None or private.engine is None):
        raise click.MissingParameter(param_hint="'INPUTS...'", param_type="argument")
    data, engine = inputs_and_engine(private.inputs, private.table, private.query, private.engine)
    local = local_files(private.inputs) if engine is None else local_paths(private.inputs)
    for release in releases:
        refuse_record_files(public_files(release.table, release.folder), local)
    keys = filter(None, [private.ledger, private.sign_key])
    public = [file for r in releases for file in public_files(r.table, r.folder)]
    read: list[str | Path] = [*local, *public, *keys]
    targets = [file for release in releases for file in (release.output, *release.export)]
    check_targets(filter(None, (*targets, private.keep_tally)), overwrite=overwrite, inputs=read)
    for release in releases:
        check_release_name(release.output)
    outputs = [release.output for release in releases]
    account = account_of(private.ledger, private.dataset, private.analyst, outputs)
    if account is not None:
        account.refuse_records(public)
    observer = make_observer(lambda stage: None, report_private=private.report_private)

    def losses_of(tally: PartialTally) -> list[Loss]:
        """Losses of all releases of a tally."""
        return [_complete_request(release, tally).loss for release in releases]

    tallies = tallies_in(private.inputs, account, losses_of, observer)
    requests = [_complete_request(release, tallies) for release in releases]
    run = _Run(
        private=private,
        data=data if tallies is None else tallies,
        files=data if engine is None else (),  # paths of a cluster have no digest here
        engine=engine,
        account=account,
        overwrite=overwrite,
    )
    for request in requests:
        warn_of_request(request)
    if account is None and tallies is None and engine is None:
        _warn_of_ids(data, releases, requests)
    for release, request in zip(releases, requests, strict=True):
        run.publish(release, request)


def local_paths(inputs: Sequence[str]) -> list[Path]:
    """Paths of an engine that may be local."""
    names = (item.removeprefix("file://") for item in inputs)
    return [Path(name) for name in names if "://" not in name]


def _warn_of_ids(
    data: Any, releases: Sequence[PlannedRelease], requests: Sequence[BuildRequest]
) -> None:
    """Warn once of ids, if a release is per record and does not say that it is meant.

    With a ledger the dataset states the unit.
    """
    from psd.publish.recipe import PER_RECORD

    for release, request in zip(releases, requests, strict=True):
        is_stated = request.unit.has_user or release.table.get("per") == PER_RECORD
        if request.columns is not None and not is_stated:
            warn_of_ids(data, request.columns)
            return


def _complete_request(release: PlannedRelease, tallies: PartialTally | None) -> BuildRequest:
    """Request of a release, completed with the statements of the tallies."""
    from psd.errors import ParameterError
    from psd.publish.count_inputs import count_input

    domain = None if tallies is None else tallies.rules.domain
    request = release.build_request(domain)
    if tallies is not None:
        request = count_input(tallies).complete(request)
    if request.slices is not None and release.export:
        raise ParameterError("export must be left out with slices; export a slice of the series")
    return request


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Inputs and options that all releases of a recipe share."""

    private: PrivateInputs
    data: Any
    files: Sequence[Any]
    engine: Engine | None
    account: Account | None
    overwrite: bool

    def publish(self, release: PlannedRelease, request: BuildRequest) -> None:
        """Build and save one release, then sign and export it."""
        from psd.publish.pipeline import publish

        counted: list[Tally] = []
        with show_stage() as stage:
            observer = make_observer(
                stage,
                report_private=self.private.report_private,
                private_tally=counted.append if self.private.keep_tally else None,
            )
            built = publish(
                request,
                self.data,
                engine=self.engine,
                memory=self.private.memory,
                account=self.account,
                observer=observer,
            )
            stage("writing")
            built.save(release.output, overwrite=self.overwrite)
            if self.account is not None:
                self.account.finish(release.output)
            self._keep_tally(counted, built, release.output, request)
        print_success(
            f"wrote {release.output}: {_method_text(built)}, {built.record.guarantee_text}"
        )
        if request.noise_text is not None:
            print_success(request.noise_text)
        if self.account is not None:
            print_success(f"ledger head {self.account.head}")
        if self.private.keep_tally:
            print_success(f"wrote {self.private.keep_tally} (PRIVATE)")
        self._sign_and_export(built, release)

    def _keep_tally(
        self,
        counted: list[Tally],
        built: Release,
        output: str,
        request: BuildRequest,
    ) -> None:
        """Write the tally of a build."""
        if self.private.keep_tally is None:
            return
        tally = counted[0] if counted else self.data
        write_build_tally(
            self.private.keep_tally, tally, built, output, self.files, request.columns,
            overwrite=self.overwrite,
        )  # fmt: skip

    def _sign_and_export(self, built: Release, release: PlannedRelease) -> None:
        """Write the signature and the exports of a release file."""
        from psd.signing import sign

        if self.private.sign_key is not None:
            signature = sign(release.output, self.private.sign_key, overwrite=self.overwrite)
            print_success(f"wrote {signature}")
        for path in release.export:
            built.export(path, overwrite=self.overwrite)
            print_success(f"wrote {path}")


def _method_text(release: Any) -> str:
    """Method, and the number of slices where there are any."""
    slices = getattr(release, "slices", None)
    if slices is None:
        return str(release.method)
    number = "1 slice" if len(slices) == 1 else f"{len(slices)} slices"
    return f"{release.method}, {number}"
